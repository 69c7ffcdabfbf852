# SPDX-License-Identifier: Apache-2.0
"""What stays outside the delegates: PyTorch's numbers in tosaic and, without delegates, in ExecuTorch, int64 as int64."""
import pathlib
import subprocess
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from executorch.exir import to_edge
from torch import nn
from torch.nn import functional as F

import executorch_programs
from executorch_runtime import execute
from functions import Of


def expect(found, expected):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert f.dtype == e.dtype and f.shape == e.shape
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)


X = torch.linspace(-2, 2, 12).reshape(3, 4)
L = torch.tensor([3, -7, 2**33 + 5, 2**20])
I32 = torch.tensor([2**31 - 1, 2**31 - 2, 2**30, -5], dtype=torch.int32)
U8 = torch.tensor([0, 3, 200, 255], dtype=torch.uint8)
AT = torch.tensor([[0, 2], [1, 1], [2, 0]])
GRID = torch.linspace(-2.6, 2.6, 2 * 3 * 3 * 2).reshape(2, 3, 3, 2)

CASES = {
    # more than ExecuTorch's kernel takes
    "cut_off": (lambda x: F.pad(x, (1, -2, -1, 0)) * 2, torch.linspace(0, 1, 12, dtype=torch.float64).reshape(3, 4)),
    # conversions drop the fraction
    "to_uint8": (lambda x: (x.abs() * 10.7).to(torch.uint8), X),
    "to_int": (lambda x: (x * 1.9).int(), X),
    "to_bool": (lambda x: (x * 0.4).bool(), X),
    "from_bool": (lambda x: (x > 0).float() + (x > 1).long(), X),
    # int64 beyond 32 bits
    "constant": (lambda x: x + torch.tensor([2**33, 1, 2, -2**40]), L),
    "scalar": (lambda x: x * 2**33 + 1, torch.tensor([0, 1, -3])),
    "exact_scalar": (lambda x: x * 6364136223846793005 + 1442695040888963407, L),
    "full": (lambda x: torch.full((3,), 2**33) + x.sum().long(), X),
    "arange": (lambda x: torch.arange(2**33, 2**33 + 3) + x, torch.tensor([1, 2, 3])),
    "compare": (lambda x: (x > 2**32).float(), L),
    "sum": (lambda x: x.sum(), I32),
    "sum_along": (lambda x: x.reshape(2, 2).sum(1, keepdim=True), I32),
    "cumsum": (lambda x: x.cumsum(0), I32),
    "prod": (lambda x: x.prod(), I32[1:]),
    "square": (lambda x: x * x - x // 3 + x % 1000003, L),
    "where": (lambda x: torch.where(x > 5, x, 2**35), L),
    "clamp": (lambda x: x.clamp(-3, 2**33), L),
    "argmax": (lambda x: (x.argmax(), x.max(0)[0], x.argmin()), L),
    "sorted": (lambda x: tuple(torch.sort(x)), L),
    "product": (lambda x: x.reshape(2, 2) @ x.reshape(2, 2), torch.tensor([2**31, 3, 5, -2**20])),
    # calls without a kernel in ExecuTorch
    "sum_all": (lambda x: torch.topk(x, 2)[0].sum(), X),
    "where_scalars": (lambda x: torch.where(torch.topk(x, 4)[0] > 0, x, 0.5), X),
    "one_hot": (lambda i: F.one_hot(i, 4), AT),
    "all": (lambda x: (x > 0).all(1), X),
    "sort": (lambda x: tuple(torch.sort(x.sin(), dim=1, descending=True)), X),
    "index_copy": (lambda x, i: x.index_copy(0, i[:, 0], x.flip(0)), X, AT),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
                    torch.linspace(-1, 1, 2 * 2 * 4 * 5).reshape(2, 2, 4, 5), GRID),
    "floor_divide": (lambda x: x // 3, AT),
    "dropout": (lambda x: F.dropout(torch.topk(x, 2)[0], 0.5, training=False), X),
    "gather": (lambda x, i: torch.topk(x.gather(1, i), 2)[0], X, AT),
    "scatter": (lambda x, i: torch.topk(x.scatter(1, i[:, :1], x), 4)[0], X, AT),
    "scatter_add": (lambda x, i: torch.topk(x.scatter_add(1, i, x), 4)[0], X, AT),
    "abs_not": (lambda i: (i.abs(), i.bitwise_not()), AT - 2),
    # int32 that the program made of int64 itself
    "sorted_int32": (lambda i: torch.sort(i.cumsum(0).int())[0], torch.tensor([3, 1, -4], dtype=torch.int32)),
    "positions": (lambda i: ((i.ne(1).int().cumsum(1).type_as(i.int()) + 0) * i.ne(1).int()).long() + 1, AT),
    # what moves is not the first operand
    "copied": (lambda x, y: torch.ops.aten.copy(x, y[0]), AT, AT * 7),
    "copied_float64": (lambda x: torch.ops.aten.copy(x.double(), x[0].double() * 2) + 1, X),
    # only one of four results is read
    "embedding_bag": (lambda x, i: F.embedding_bag(i, x, torch.tensor([0, 2])), X, torch.tensor([1, 2, 0, 1])),
    # dtypes that delegates lack
    "float64": (lambda x: (x.double() * 1e10 + 1).sum(1) - 1e10, X),
    "uint8": (lambda u: (u + u, u * 3, u // 7, 255 - u), U8),
    "integer_product": (lambda i: i @ i.T, AT),
    "empty": (lambda x: (x[:0], torch.cat([x[:, 2:2], x], 1)), X),
    "empty_state": (lambda x: torch.cat([x.sin(), torch.empty(0).to(x.dtype), x[2:].sin()[1:].clamp(-1, 1)]) + 1, X),
    "constants": (lambda x: (x, torch.arange(3), torch.tensor([1.5], dtype=torch.float64)), X),
    "nan_last": (lambda x: tuple(torch.sort(x)), torch.tensor([1.0, float("nan"), -2, float("inf"), float("nan"), 0])),
    "least": (lambda i: torch.div(i, 2, rounding_mode="trunc"), torch.tensor([-2**31, 7], dtype=torch.int32)),
}


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int"])
@pytest.mark.parametrize("name", CASES)
def test_pytorchs_numbers(name, target, tool, tosaic, tmp_path):
    function, *inputs = CASES[name]
    module = Of(function)
    torch.export.save(torch.export.export(module, tuple(inputs)), tmp_path / "m.pt2")
    expected = module(*inputs)
    expected = [e.numpy() for e in (expected if isinstance(expected, tuple) else (expected,))]
    arrays = [i.numpy() for i in inputs]
    tool("compile", tmp_path / "m.pt2", "--target", target, "-o", tmp_path / "m.pte")
    found = tool.run(tmp_path / "m.pte", arrays, tmp_path)
    quantised = target == "tosa-int" and any(a.dtype.kind == "f" for a in arrays)
    if not quantised:
        expect(found, expected)
    if "delegate" not in tool("inspect", tmp_path / "m.pte"):
        found = execute(tmp_path / "m.pte", arrays)
        if not quantised:
            expect(found, expected)


PORTABLE = ["to_uint8", "to_int", "from_bool", "scalar", "exact_scalar", "full", "arange", "sum", "cumsum", "square",
            "compare", "argmax", "float64", "uint8"]


@pytest.mark.parametrize("name", PORTABLE)
def test_programs_of_executorch(name, tool, tmp_path):
    """ExecuTorch's own file of the same calls: portable kernels on int64, float64 and uint8."""
    function, *inputs = CASES[name]
    module = Of(function)
    (tmp_path / "m.pte").write_bytes(to_edge(torch.export.export(module, tuple(inputs))).to_executorch().buffer)
    expected = module(*inputs)
    expected = [e.numpy() for e in (expected if isinstance(expected, tuple) else (expected,))]
    expect(tool.run(tmp_path / "m.pte", [i.numpy() for i in inputs], tmp_path), expected)


BEYOND = {
    "rows": lambda i: X[i],
    "embedding": lambda i: F.embedding(i, X),
    "scatter": lambda i: torch.zeros(3, 4).scatter(0, i[:, None], X[:1]),
    "scatter_value": lambda i: torch.zeros(3, 4).scatter(0, i[:, None], 1.0),
    "index_fill": lambda i: X.index_fill(0, i, 0.0),
    "index_add": lambda i: X.index_add(0, i, X[:1]),
    "second_of_two": lambda i: X[torch.zeros_like(i), i + 1],
}


@pytest.mark.parametrize("name", BEYOND)
def test_an_index_outside_is_an_error(name, tool, tosaic, tmp_path):
    """As in PyTorch: neither another row, nor nothing."""
    module = Of(BEYOND[name])
    torch.export.save(torch.export.export(module, (torch.tensor([1]),)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    expect(tool.run(tmp_path / "m.pte", [np.array([1])], tmp_path), [module(torch.tensor([1])).numpy()])
    for index in 2**32 + 1, 7:
        np.save(tmp_path / "i.npy", np.array([index]))
        done = subprocess.run([tosaic, "run", tmp_path / "m.pte", "--input", tmp_path / "i.npy"], capture_output=True,
                              text=True)
        assert done.returncode == 1 and "is outside" in done.stderr, done.stderr


TAKEN = {
    "argument": lambda s, x: x.clamp(max=s[0].item()) + torch.full((4,), s[1].item()),  # YOLO's strides
    "arithmetic": lambda s, x: x * (s[1].item() * 2 - 1) + s[0],
    "size": lambda s, x: x[:, :s[0].long().item()].exp() * s[1].item(),
    "tensor": lambda s, x: x * x.sum().item() - x.reshape(12)[5:6].item(),
}


@pytest.mark.parametrize("name", TAKEN)
def test_numbers_taken_out_of_tensors(name, tool, tmp_path):
    """Of a buffer item() is known, and so are sizes made of it; what calls take as well as a tensor is the tensor."""
    class Taken(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("s", torch.tensor([1.0, 8.0]))

        def forward(self, x):
            return TAKEN[name](self.s, x)

    module = Taken()
    torch.export.save(torch.export.export(module, (X,), strict=False), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    assert "nothing-delegated" not in tool.said and "executorch-only" not in tool.said, tool.said
    expect(tool.run(tmp_path / "m.pte", [X.numpy()], tmp_path), [module(X).numpy()])


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_a_float_recurrent_layer_behind_codes(layer, tool, tmp_path):
    """PT2E's quantisers leave it float: spelled in kernels that ExecuTorch has."""
    class Behind(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.layer = layer(4, 5, batch_first=True)

        def forward(self, x):
            codes = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.02, 0, -128, 127, torch.int8)
            y = torch.ops.quantized_decomposed.dequantize_per_tensor(codes, 0.02, 0, -128, 127, torch.int8)
            return self.layer(y)[0]

    module, x = Behind().eval(), X[None]
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-int", "-o", tmp_path / "m.pte")
    expected = [module(x).detach().numpy()]
    expect(tool.run(tmp_path / "m.pte", [x.numpy()], tmp_path), expected)
    assert "pack.tosaic-only" not in tool.said
    expect(execute(tmp_path / "m.pte", [x.numpy()]), expected)


def test_what_may_overflow_is_outside_or_said(tosaic, tmp_path):
    class Square(nn.Module):  # here, because the message names the user's file
        def forward(self, x, y):
            return (x * x).float() + y

    inputs = torch.tensor([3, 4]), torch.ones(2)
    torch.export.save(torch.export.export(Square(), inputs), tmp_path / "m.pt2")
    compiled = [tosaic, "compile", tmp_path / "m.pt2", "-o", tmp_path / "m.pte"]
    done = subprocess.run([*compiled, "--target", "tosa-fp"], capture_output=True, text=True)
    assert done.returncode == 0 and "outside    1 x aten.mul.Tensor" in done.stdout + done.stderr, done.stdout
    done = subprocess.run([*compiled, "--target", "vulkan", "--require-full-delegation"], capture_output=True, text=True)
    assert done.returncode == 0 and "model.int64-narrowed" in done.stderr and "test_outside.py" in done.stderr


def test_the_list_of_kernels_is_executorchs():
    """src/pack/executorch_kernels.inc is what the installed version registers."""
    stored = (pathlib.Path(__file__).parents[2] / "src/pack/executorch_kernels.inc").read_text()
    assert stored == executorch_programs.listing()


def test_what_runs_nowhere_else_is_said(tosaic, tmp_path):
    """A kernel that one of the two runtimes lacks is a warning; one that both lack an error."""
    def compiled(function, *inputs):
        torch.export.save(torch.export.export(Of(function), inputs), tmp_path / "m.pt2")
        return subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte"],
                              capture_output=True, text=True)
    done = compiled(lambda x: F.max_pool2d(x, 2, return_indices=True), torch.zeros(1, 1, 4, 4))
    assert done.returncode == 0 and "pack.executorch-only" not in done.stderr, done.stderr
    done = compiled(lambda x: F.max_pool2d(x, 12, return_indices=True), torch.zeros(1, 1, 24, 24))  # large windows
    assert done.returncode == 0 and "pack.executorch-only" in done.stderr
    done = compiled(lambda x, m: (F.max_pool2d(x, 12, return_indices=True), F.mse_loss(y := x[m], y * 2)),
                    torch.zeros(1, 1, 24, 24), torch.ones(1, 1, 24, 24, dtype=torch.bool))
    assert done.returncode == 1 and "would run nowhere" in done.stderr
