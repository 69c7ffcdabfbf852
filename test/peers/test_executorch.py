# SPDX-License-Identifier: Apache-2.0
"""The .pte container in both directions: ExecuTorch loads what we write, and we run what ExecuTorch writes."""
import subprocess
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.runtime import Runtime, Verification
from torch import nn


def load(path):
    return Runtime.get().load_program(path, verification=Verification.InternalConsistency)


def execute(path, inputs):
    outputs = load(path).load_method("forward").execute([torch.from_numpy(i) for i in inputs])
    return [o.numpy() for o in outputs]


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
    path = tmp_path / "m.pte"
    path.write_bytes(to_edge(torch.export.load(model.program("raw"))).to_executorch().buffer)
    inputs = model.arrays("input")[0]
    for found, expected in zip(tool.run(path, inputs, tmp_path), execute(path, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


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
