# SPDX-License-Identifier: Apache-2.0
"""Writes test/plugin/programs with ExecuTorch's own Arm flow (1.5.1): run with its Python, then commit.

Each program has the inputs and PyTorch's outputs next to it (<name>.npz), of the quantised module where there is one.
"""
import os
import pathlib
import sys

import numpy
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.ethosu.compile_spec import VelaExternalBlockPlacements
from executorch.backends.arm.quantizer import (EthosUQuantizer, TOSAQuantizer, VgfQuantizer,
                                               get_symmetric_a16w8_quantization_config,
                                               get_symmetric_quantization_config)
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "programs")
OUT.mkdir(exist_ok=True)
ONLY = sys.argv[2:]
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return self.head((x + self.depthwise(x)).mean((2, 3)))


class Parted(torch.nn.Module):
    """TOSA has no sort: a kernel of ExecuTorch's between two delegates, and an output that no delegate makes."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(4, 3)

    def forward(self, x):
        values, places = torch.topk(torch.relu(self.first(x)), 4, dim=1)
        return self.second(values), places


class Layout(torch.nn.Module):
    """Tensors of two dim orders on their way in and out."""

    def forward(self, x, y):
        return x * 2 + y, x.permute(0, 2, 3, 1) - 1


def quantised(module, example, quantizer, config=None):
    quantizer.set_global(config or get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, example).module(check_guards=False), quantizer)
    prepared(*example)
    return convert_pt2e(prepared)


def save(name, methods, partitioner, segments=True, shapes=None, external=False):
    """`methods`: (module, example) by name."""
    if ONLY and name not in ONLY:
        return
    exported = {m: torch.export.export(module, example, dynamic_shapes=shapes) for m, (module, example) in methods.items()}
    edge = to_edge_transform_and_lower(exported, partitioner={m: [partitioner] for m in methods},
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program = edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=segments, external_constants=external))
    (OUT / f"{name}.pte").write_bytes(program.buffer)
    program.write_tensor_data_to_file(str(OUT))
    arrays = {}
    for m, (module, example) in methods.items():
        outputs = module(*example)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        arrays |= {f"{m}_in{i}": x.numpy() for i, x in enumerate(example)}
        arrays |= {f"{m}_out{i}": y.detach().contiguous().numpy() for i, y in enumerate(outputs)}
    numpy.savez(OUT / f"{name}.npz", **arrays)
    print(name, (OUT / f"{name}.pte").stat().st_size)


torch.manual_seed(3)
small, image = Small().eval(), (torch.randn(1, 3, 16, 16),)
parted, row = Parted().eval(), (torch.randn(2, 6),)
tosa_fp, tosa_int = TosaCompileSpec("TOSA-1.0+FP"), TosaCompileSpec("TOSA-1.0+INT+int16")
vgf, npu = VgfCompileSpec("TOSA-1.0+INT"), EthosUCompileSpec("ethos-u55-128")

int8 = quantised(small, image, EthosUQuantizer(npu))
save("tosa_fp", {"forward": (small, image)}, TOSAPartitioner(tosa_fp))
save("tosa_int", {"forward": (quantised(small, image, TOSAQuantizer(tosa_int)), image)}, TOSAPartitioner(tosa_int))
save("tosa_int16", {"forward": (quantised(small, image, TOSAQuantizer(tosa_int), get_symmetric_a16w8_quantization_config()),
                                image)}, TOSAPartitioner(tosa_int))
save("tosa_parted", {"forward": (parted, row)}, TOSAPartitioner(tosa_fp), external=True)
save("tosa_layout", {"forward": (Layout(), (torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last),
                                            torch.randn(1, 3, 4, 5)))}, TOSAPartitioner(tosa_fp))
ones = torch.randn(1, 1, 7, 5).to(memory_format=torch.channels_last)  # of which several dim orders are true
save("tosa_ones_layout", {"forward": (torch.nn.Conv2d(1, 5, 1).eval(), (ones,))}, TOSAPartitioner(tosa_fp))
conv, last = torch.nn.Conv2d(3, 4, 3, padding=1).eval(), (torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last),)
save("ethos_layout", {"forward": (quantised(conv, last, EthosUQuantizer(npu)), last)}, EthosUPartitioner(npu))
save("tosa_methods", {"first": (small, image), "second": (parted, row)}, TOSAPartitioner(tosa_fp))
save("tosa_dynamic", {"forward": (torch.nn.Hardswish(), (torch.randn(2, 6),))}, TOSAPartitioner(tosa_fp),
     shapes=({0: torch.export.Dim("n", min=1, max=8)},))
save("vgf_fp", {"forward": (small, image)}, VgfPartitioner(VgfCompileSpec()))
save("vgf_int", {"forward": (quantised(small, image, VgfQuantizer(vgf)), image)}, VgfPartitioner(vgf), segments=False)
save("ethos_u55", {"forward": (int8, image)}, EthosUPartitioner(npu))
save("ethos_u85", {"forward": (int8, image)}, EthosUPartitioner(EthosUCompileSpec("ethos-u85-256")), segments=False)
save("ethos_u85_external", {"forward": (int8, image)}, EthosUPartitioner(EthosUCompileSpec(
    "ethos-u85-256", external_block_placements=VelaExternalBlockPlacements(weight_data="ethos_u85_weights"))))
