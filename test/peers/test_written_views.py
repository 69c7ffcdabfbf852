# SPDX-License-Identifier: Apache-2.0
"""Programs that write into views, as people write masks and shifted tokens, against PyTorch."""
import numpy as np
import pytest
import torch

X = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) - 7


def column(x):
    y = x.clone()
    y[:, 0] = 0
    return y


def windows(x):  # Swin's attention mask
    mask = torch.zeros(1, 8, 8, 1)
    count = 0
    for rows in (slice(0, -4), slice(-4, -2), slice(-2, None)):
        for columns in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            mask[:, rows, columns, :] = count
            count += 1
    return mask.reshape(8, 8)[:3, :4] + x


def shifted(x):  # BART's decoder inputs
    y = x.new_zeros(x.shape)
    y[..., 1:] = x[..., :-1].clone()
    y[..., 0] = 2
    return y.masked_fill_(y == 4, 9)


def masked(x):
    y = x.clone()
    y[y > 3] = -1
    y[:, 1].masked_fill_(y[:, 1] < 0, 5)
    return y


def strided(x):
    y = x * 2
    y[:, ::2, 1::2] += 1
    return y


def siblings(x):  # a view taken before the write sees it
    y = x * 1
    first, rows = y[0], y.transpose(0, 1)
    first.mul_(3)
    rows[1].add_(1)
    return y, first, rows, y.view(6, 4)[2]


def twice(x):  # the result of an in-place call is the tensor itself
    y = x * 1
    z = y.add_(1)
    z.mul_(2)
    return y + z


def permuted(x):
    y = x + 0
    y.permute(2, 0, 1)[1:3, :, 0] = x[:, 1, :2].t()
    return y


def diagonal(x):
    y = x[0, :3, :3] * 1
    y.diagonal().fill_(7)
    y.diagonal(1).zero_()
    return y


def parts(x):
    y = x * 1
    a, b = y.chunk(2, dim=-1)
    a.copy_(b * 2)
    y.unbind(1)[2].zero_()
    return y


def regrouped(x):  # a reshape of memory just made is a view
    y = torch.zeros(2, 3, 4)
    y.reshape(6, 4)[1] = x[0, 0]
    y.flatten()[5:7] = 1.5
    return y + x


def unsqueezed(x):
    y = x[0] * 1
    y.unsqueeze(0)[:, 1].sub_(y[2])
    y[None].squeeze(0)[0] = 1
    return y


def integers(x):
    y = x.to(torch.int64)
    y[:, -1:, :] = y[:, :1, :] // 2
    y[0].copy_(torch.ones(4, dtype=torch.int32))
    return y


def memory(x):
    y = x[:, 1:] * 1
    return y.as_strided((2, 3), (8, 2), 1), y[:, 1].as_strided((3, 2), (1, 4))


FUNCTIONS = [column, windows, shifted, masked, strided, siblings, twice, permuted, diagonal, parts, regrouped,
             unsqueezed, integers, memory]


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def export(function, path, decompose=False):
    program = torch.export.export(Module(function), (X,))
    torch.export.save(program.run_decompositions() if decompose else program, path)
    return path


@pytest.mark.parametrize("decompose", [False, True], ids=["raw", "decomposed"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_equals_eager(function, decompose, tool, tmp_path):
    tool("compile", export(function, tmp_path / "m.pt2", decompose), "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    expected = function(X.clone())
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, e in zip(tool.run(tmp_path / "m.pte", [X.numpy()], tmp_path), expected, strict=True):
        assert found.dtype == e.numpy().dtype
        np.testing.assert_array_equal(found, e.numpy())


def test_a_reshape_that_may_copy_is_refused(tool, tmp_path):
    def unclear(x):
        y = torch.relu(x)
        y.reshape(-1)[0] = 100
        return y

    with pytest.raises(AssertionError, match="model.write-through-view.*reshape"):
        tool("compile", export(unclear, tmp_path / "m.pt2"), "--target", "tosa-fp", "-o", tmp_path / "m.pte")
