# SPDX-License-Identifier: Apache-2.0
"""The .pte container in both directions: ExecuTorch loads what we write, and we run what ExecuTorch writes."""
import json
import subprocess
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from torch import nn

from executorch_runtime import execute, load
from functions import Of


def test_executorch_reads_our_programs(model, variant, compiled):
    pte, _ = compiled(model, *variant)
    program = load(pte)
    assert program.method_names == {"forward"}
    metadata = program.metadata("forward")
    inputs, outputs = model.arrays("input")[0], model.arrays("float")[0]
    assert metadata.num_inputs() == len(inputs) and metadata.num_outputs() == len(outputs)
    for i, array in enumerate(inputs):
        assert tuple(metadata.input_tensor_meta(i).sizes()) == array.shape
    for i, array in enumerate(outputs):
        assert tuple(metadata.output_tensor_meta(i).sizes()) == array.shape


class Largest(nn.Module):
    """TOSA has no sort: nothing to delegate. Two results, one of them int64."""

    def forward(self, x):
        values, indices = torch.topk(x, 2, dim=1)
        return values, indices


class Twice(nn.Module):
    """An intermediate tensor, two inputs, two outputs."""

    def forward(self, x, y):
        return torch.topk(torch.topk(x, 2, dim=0)[0], 3, dim=1)[0], torch.topk(y, 2, dim=0)[0]


X = torch.linspace(-2, 2, 12).reshape(3, 4).flip(1).contiguous()


@pytest.mark.parametrize("module, inputs", [(Largest(), (X,)), (Twice(), (X, X[0].clone()))],
                         ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "")
def test_executorch_runs_our_kernel_calls(module, inputs, tool, tmp_path):
    """A program without delegates runs in ExecuTorch's own runtime, and gives PyTorch's numbers."""
    torch.export.save(torch.export.export(module, inputs), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = execute(tmp_path / "m.pte", [i.numpy() for i in inputs])
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e.numpy(), rtol=1e-6, atol=1e-6)


ATEN = torch.ops.aten
IMAGE, WEIGHT = torch.linspace(-1, 1, 72).reshape(1, 2, 6, 6), torch.linspace(-2, 1, 54).reshape(3, 2, 3, 3)
UNKNOWN = {  # operators that tosaic does not know, and ExecuTorch does
    "lists_and_flags": (lambda g, x, w: ATEN.convolution_backward(g, x, w, [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                                                  [True, True, True]),
                        torch.linspace(0, 1, 108).reshape(1, 3, 6, 6).sin(), IMAGE, WEIGHT),
    "a_size_that_depends_on_values": (lambda x, m: torch.masked_select(x, m) * 2, X, X > 0.5),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_kernels_of_operators_that_tosaic_does_not_know(name, tool, tmp_path):
    """They are called with all the arguments that PyTorch's schema names, also those that the .pt2 leaves out."""
    function, *inputs = UNKNOWN[name]
    torch.export.save(torch.export.export(Of(function), tuple(inputs)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    assert "pack.executorch-only" in tool.said and "pack.unknown-kernel" not in tool.said
    expected = function(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for f, e in zip(load(tmp_path / "m.pte").load_method("forward").execute(inputs), expected, strict=True):
        assert f.dtype == e.dtype and f.shape == e.shape
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-5)


def test_decomposed_into_what_executorch_has(tool, tosaic, tmp_path):
    """An operator that nobody has is refused with a hint, and following the hint helps."""
    exported = torch.export.export(Of(nn.functional.pdist), (X,))
    torch.export.save(exported, tmp_path / "m.pt2")
    command = [tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "m.pte").exists()
    assert "error[pack.unknown-operator]: aten.pdist.default" in done.stderr and "run_decompositions" in done.stderr
    torch.export.save(exported.run_decompositions(), tmp_path / "m.pt2")
    tool(*command[1:])
    np.save(tmp_path / "x.npy", X.numpy())
    tool("run", tmp_path / "m.pte", "--input", tmp_path / "x.npy", "--output-dir", tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), nn.functional.pdist(X), rtol=1e-6)


class Kinds(nn.Module):
    """Writes to its input; takes a number, a flag and None; returns numbers and None among tensors."""

    def forward(self, x, times, flag, nothing):
        x.add_(1)
        values, indices = torch.topk(x, 2, dim=1)
        return values, None, 3, [2.5, (times, flag), indices]


def test_kinds_of_inputs_and_outputs(tool, tmp_path):
    """What is no tensor stands where ExecuTorch's own program has it, and an input that is written to comes first."""
    def compiled_twice(name, x):
        def export():
            return torch.export.export(Kinds(), (x.clone(), 2, True, None))
        torch.export.save(export(), tmp_path / f"{name}.pt2")
        tool("compile", tmp_path / f"{name}.pt2", "--target", "tosa-fp", "-o", tmp_path / f"{name}.pte")
        (tmp_path / f"{name}_theirs.pte").write_bytes(to_edge(export()).to_executorch().buffer)
        return tmp_path / f"{name}.pte", tmp_path / f"{name}_theirs.pte"

    # No delegate takes doubles, so ExecuTorch runs both programs.
    ours, theirs = (load(path).load_method("forward").execute([X.double(), 2, True, None])
                    for path in compiled_twice("double", X.double()))
    assert [type(v) for v in ours] == [type(v) for v in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        assert torch.equal(found, expected) if isinstance(found, torch.Tensor) else found == expected
    assert torch.equal(ours[0], X.double() + 1)

    np.save(tmp_path / "x.npy", X.numpy())
    for path in compiled_twice("float", X):
        told = json.loads(tool("run", path, "--input", tmp_path / "x.npy", "--json", "--output-dir", tmp_path))
        assert told["outputs"] == ["3x4xf32", "3x2xf32", "None", "int", "float", "int", "bool", "3x2xi64"]
        assert told["values"] == [None, None, None, 3, 2.5, 2, True, None]
        np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), X.numpy() + 1)
        assert np.load(tmp_path / "output_4.npy") == 2.5


class Item(nn.Module):
    def forward(self, x):
        return x.sum().item(), torch.topk(x, 1, dim=0)[0]


def test_a_number_that_is_computed(tool, tmp_path):
    torch.export.save(torch.export.export(Item(), (X,)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    (tmp_path / "theirs.pte").write_bytes(to_edge(torch.export.export(Item(), (X,))).to_executorch().buffer)
    np.save(tmp_path / "x.npy", X.numpy())
    for name in ("m.pte", "theirs.pte"):
        told = json.loads(tool("run", tmp_path / name, "--input", tmp_path / "x.npy", "--json"))
        assert told["outputs"] == ["float", "1x4xf32"]
        assert abs(told["values"][0] - X.sum().item()) < 1e-5


def test_constant_methods(tool, tmp_path):
    """Methods without inputs, which ExecuTorch writes for the numbers that go with a model."""
    methods = {"size": 7, "limits": [0.5, True, 3], "name": "digits"}
    program = to_edge(torch.export.export(Shapes(), (X,)), constant_methods=methods).to_executorch()
    (tmp_path / "m.pte").write_bytes(program.buffer)
    for method, expected in {"size": [7], "limits": [0.5, True, 3], "name": ["digits"]}.items():
        assert json.loads(tool("run", tmp_path / "m.pte", "--method", method, "--json"))["values"] == expected


class Arithmetic(nn.Module):
    def forward(self, x, y):
        return torch.relu(x * y + 2) - y.abs(), torch.exp(-x * x)


class Shapes(nn.Module):
    def forward(self, x):
        a, b = x.transpose(0, 1).reshape(2, -1).split(3, dim=1)
        return torch.cat([a, b + 1], dim=0).permute(1, 0)


class Reductions(nn.Module):
    def forward(self, x):
        return x.mean(1), x.amax(0, keepdim=True), torch.softmax(x, 1), x.sum()


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Hardswish(), nn.MaxPool2d(2),
                                 nn.Conv2d(4, 4, 3, groups=4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))

    def forward(self, x):
        return self.net(x)


PORTABLE = [(Arithmetic(), (X, X.flip(0).contiguous())), (Shapes(), (X,)), (Reductions(), (X,)),
            (Convolution().eval(), (torch.linspace(-1, 1, 2 * 64).reshape(1, 2, 8, 8),))]


@pytest.mark.parametrize("module, inputs", PORTABLE, ids=[type(m).__name__ for m, _ in PORTABLE])
def test_we_run_executorch_programs(module, inputs, tool, tmp_path):
    """ExecuTorch's own file, portable kernels only: equal to ExecuTorch's own execution of it."""
    path = tmp_path / "m.pte"
    path.write_bytes(to_edge(torch.export.export(module, inputs)).to_executorch().buffer)
    arrays = [i.numpy() for i in inputs]
    for found, expected in zip(tool.run(path, arrays, tmp_path), execute(path, arrays), strict=True):
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_we_run_executorch_models(model, tool, tmp_path):
    """Against the same program in float64: rounding may cost us no more than twice what it costs ExecuTorch."""
    path = tmp_path / "m.pte"
    path.write_bytes(to_edge(torch.export.load(model.program("raw"))).to_executorch().buffer)
    inputs = model.arrays("input")[0]
    exact = torch.export.load(model.program("raw")).module().double()(*[torch.from_numpy(i).double() for i in inputs])
    exact = [e.detach().numpy() for e in (exact if isinstance(exact, tuple) else (exact,))]
    for found, peer, e in zip(tool.run(path, inputs, tmp_path), execute(path, inputs), exact, strict=True):
        assert found.dtype == peer.dtype and found.shape == peer.shape
        assert np.abs(found - e).max() <= 2 * np.abs(peer - e).max() + np.finfo(np.float32).eps * np.abs(e).max()


def test_constants_in_a_data_file(tool, tosaic, tmp_path):
    """What ExecuTorch keeps outside its program (.ptd) gives the results of the program that has it inside."""
    module, inputs = PORTABLE[-1]
    edge = torch.export.export(module, inputs)
    inside, outside = tmp_path / "inside.pte", tmp_path / "outside.pte"
    inside.write_bytes(to_edge(edge).to_executorch().buffer)
    program = to_edge(edge).to_executorch(ExecutorchBackendConfig(external_constants=True))
    outside.write_bytes(program.buffer)
    program.write_tensor_data_to_file(str(tmp_path))
    data, = tmp_path.glob("*.ptd")
    arrays = [i.numpy() for i in inputs]
    for found, expected in zip(tool.run(outside, arrays, tmp_path, "--data", data), tool.run(inside, arrays, tmp_path), strict=True):
        np.testing.assert_array_equal(found, expected)
    done = subprocess.run([tosaic, "run", str(outside)], capture_output=True, text=True)
    assert done.returncode == 1 and "error[method.external-data]" in done.stderr and "--data" in done.stderr
    assert "x3x3xf32" in tool("inspect", data)
