# SPDX-License-Identifier: Apache-2.0
"""`x.unsqueeze_(0)`: x itself becomes a view. Who reads it later reads the new shape, views of it that were taken before keep
theirs, and all of them are one memory."""
import pytest
import tosaic
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


def unsqueeze(x):
    y = x * 2
    y.unsqueeze_(0)
    return y + x.unsqueeze(0), y


def squeeze(x):
    y = x[:, None] + 1
    y.squeeze_()
    z = x[:, None, :, None] * 3
    z.squeeze_(1)
    z.squeeze_(-1)
    return y * z


def transpose(x):
    y = x.clone()
    y.transpose_(0, 1)
    return y @ x, y.transpose_(-1, 0) - x


def square(x):
    y = x @ x.t()
    y.t_()
    return y - 2 * x[:, :3], y.relu()


def chained(x):
    return (x + 1).unsqueeze_(1).transpose_(0, 2).squeeze_(1).swapaxes_(0, 1)


def a_write_behind_it(x):
    y = x.clone()
    y.t_()
    y[0] = 7
    return y, y.add_(1) * 2


def a_view_from_before(x):
    y = x.clone()
    row = y[0]
    y.t_()
    row.mul_(3)
    y[1].zero_()
    return y, row + 1


def of_a_view(x):
    y = x.clone()
    row = y[1]
    row.unsqueeze_(0)
    row.fill_(5)
    return y, row - x


def by_both_names(x):
    y = x.clone()
    z = y.t_()
    z.mul_(2)
    y.add_(1)
    return y - z * 2, z


PROGRAMS = [unsqueeze, squeeze, transpose, square, chained, a_write_behind_it, a_view_from_before, of_a_view, by_both_names]


class Of(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, x):
        return self.program(x)


@pytest.mark.parametrize("strict", [False, True], ids=["traced", "strict"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_view_takes_the_place_of_the_tensor(program, strict):
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    exported = torch.export.export(Of(program), (x,), strict=strict)
    expected = program(x.clone())
    for target in (None, "tosa-fp"):
        found = tosaic.compile(exported, target=target).run(x) if target else tosaic.Program.of(exported).session().run(x)
        torch.testing.assert_close(found, expected)


def test_in_integers():
    torch.manual_seed(0)
    samples = [(torch.randn(3, 4),) for _ in range(4)]
    for program in (unsqueeze, a_write_behind_it, a_view_from_before):
        artifact = tosaic.compile(Of(program), samples[0], "tosa-int", calibration=samples)
        for found, expected in zip(artifact.run(*samples[0]), program(samples[0][0])):
            assert found.shape == expected.shape
            assert (found - expected).abs().max() < 0.05 * expected.abs().max()
