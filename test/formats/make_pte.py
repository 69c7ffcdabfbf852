# SPDX-License-Identifier: Apache-2.0
"""Writes the .pte files of test/formats/pte with ExecuTorch itself (1.5): run with its Python, then commit.

Each model has a file with the inputs and the outputs that ExecuTorch's own runtime computes (<model>.npz).
"""
import pathlib
import sys

import numpy
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.runtime import Runtime

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "pte")
OUT.mkdir(exist_ok=True)
torch.manual_seed(1)


class AddMul(torch.nn.Module):
    """Two kernels and a lifted constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.tensor([[0.5, -1.0, 2.0]]))

    def forward(self, x, y):
        return x * self.w + y, torch.relu(x)


class Mlp(torch.nn.Module):
    """Weights in the constant segment, views that alias."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 4)
        self.b = torch.nn.Linear(4, 2)

    def forward(self, x):
        return torch.softmax(self.b(torch.relu(self.a(x.reshape(-1, 8)))), dim=-1)


class Counter(torch.nn.Module):
    """A buffer that outlives a run and has an initial value."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.tensor([1.0, 2.0]))

    def forward(self, x):
        self.state.add_(x)
        return self.state * 1.0


class Branch(torch.nn.Module):
    """Jumps and moves."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v + 1.0, lambda v: v * 2.0, (x,))


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)


def save(name, model, inputs, passes=(), partitioner=None, external=False):
    exported = torch.export.export(model.eval(), inputs)
    config = EdgeCompileConfig(_check_ir_validity=False)
    if partitioner:
        edge = to_edge_transform_and_lower(exported, partitioner=[partitioner], compile_config=config)
    else:
        edge = to_edge(exported, compile_config=config)
    program = edge.to_executorch(ExecutorchBackendConfig(passes=list(passes), external_constants=external))
    path = OUT / f"{name}.pte"
    path.write_bytes(program.buffer)
    arrays = {f"in{i}": x.numpy() for i, x in enumerate(inputs)}
    try:
        outputs = Runtime.get().load_program(str(path)).load_method("forward").execute(list(inputs))
        arrays |= {f"out{i}": y.numpy() for i, y in enumerate(outputs)}
    except Exception as problem:  # a delegate that this runtime does not have: eager is the reference
        print(name, "does not run in ExecuTorch here:", problem)
        outputs = exported.module()(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        arrays |= {f"out{i}": y.detach().numpy() for i, y in enumerate(outputs)}
    numpy.savez(OUT / f"{name}.npz", **arrays)
    print(name, path.stat().st_size)


save("add_mul", AddMul(), (torch.randn(2, 3), torch.randn(2, 3)))
save("mlp", Mlp(), (torch.randn(2, 2, 4),))
save("counter", Counter(), (torch.tensor([10.0, 20.0]),), passes=[InitializedMutableBufferPass(["state"])])
save("branch", Branch(), (torch.tensor([-3.0, 1.0]),))
save("conv", Conv(), (torch.randn(1, 2, 8, 8),))

from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec  # noqa: E402
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner  # noqa: E402

save("tosa_delegate", Conv(), (torch.randn(1, 2, 8, 8),), partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")))
