# SPDX-License-Identifier: Apache-2.0
"""Programs of ExecuTorch's own Vulkan flow, with the inputs that they were made with and what PyTorch gives for them:

    .venv/bin/python test/plugin/make_vulkan_programs.py [NAME...]          # test/plugin/vulkan/NAME.pte and .npz
"""
import copy
import logging
import pathlib
import sys
import warnings

import numpy as np
import torch

STORED = pathlib.Path(__file__).with_name("vulkan")
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def lowered(model, inputs, options=None, quantizer=None, **export):
    """The .pte, and the outputs of what was exported."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    exported = torch.export.export(model.eval(), inputs, **export)
    if quantizer:
        prepared = prepare_pt2e(exported.module(), quantizer)
        prepared(*inputs)
        exported = torch.export.export(convert_pt2e(prepared), inputs)
    outputs = copy.deepcopy(exported.module())(*inputs)  # a run changes the buffers
    logging.getLogger().setLevel(logging.ERROR)
    edge = to_edge_transform_and_lower(exported, partitioner=[VulkanPartitioner(options or {})])
    return edge.to_executorch().buffer, inputs, outputs if isinstance(outputs, tuple) else (outputs,)


class Net(torch.nn.Module):
    """The blocks of MobileNetV2. Its mean is ExecuTorch's: between two delegates."""

    def __init__(self, activation=torch.nn.ReLU6):
        super().__init__()
        nn = torch.nn
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), activation())
        self.depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), activation())
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(x)
        x = x + self.pointwise(self.depthwise(x))
        return self.last(x.mean((2, 3))).softmax(-1)


def image(size=16):
    return (torch.randn(1, 3, size, size),)


@program
def add():
    class Add(torch.nn.Module):
        def forward(self, x, y):
            return x + y
    return lowered(Add(), (torch.randn(2, 3), torch.randn(2, 3)))


@program
def partly():
    class Partly(torch.nn.Module):
        def forward(self, x, y):
            return torch.cumsum(x + y, 1) * y
    return lowered(Partly(), (torch.randn(2, 3), torch.randn(2, 3)))


@program
def net():
    return lowered(Net(), image())


@program
def half():
    return lowered(Net(), image(), {"force_fp16": True})


@program
def buffers():
    from executorch.backends.vulkan.serialization.vulkan_graph_schema import VkMemoryLayout, VkStorageType
    return lowered(Net(), image(), {"storage_type_override": VkStorageType.BUFFER,
                                    "memory_layout_override": VkMemoryLayout.TENSOR_CHANNELS_PACKED})


@program
def token():
    class Token(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = torch.nn.Embedding(10, 8), torch.nn.Linear(8, 6)

        def forward(self, i):
            return torch.argmax(self.linear(self.table(i)), -1), i + 2
    return lowered(Token(), (torch.randint(0, 10, (1, 6)),))


@program
def attention():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mix = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48)
            self.out = torch.nn.Linear(16, 16)

        def forward(self, x):
            q, k, v = (t.view(1, 5, 2, 8).transpose(1, 2) for t in self.mix(self.norm(x)).chunk(3, -1))
            y = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1) @ v
            return x + torch.nn.functional.gelu(self.out(y.transpose(1, 2).reshape(1, 5, 16)))
    return lowered(Block(), (torch.randn(1, 5, 16),))


@program
def shapes():
    class Shapes(torch.nn.Module):
        def forward(self, x):
            a, b = x.split([2, 4], 1)
            y = torch.cat([a, b[:, 1:3].flip(0)], 1).permute(0, 2, 1).unsqueeze(1)
            return torch.nn.functional.pad(y, (1, 2)), x.amax(-1, keepdim=True), torch.where(x > 0, x, x * 2).sum(-1)
    return lowered(Shapes(), (torch.randn(2, 6, 5),))


def linear(*shape):
    return torch.nn.Sequential(torch.nn.Linear(shape[-1], 24), torch.nn.ReLU(), torch.nn.Linear(24, 8)), (torch.randn(*shape),)


def weights_only(bits):
    from executorch.backends.vulkan.quantizer.vulkan_quantizer import VulkanQuantizer, get_symmetric_quantization_config
    return VulkanQuantizer().set_global(get_symmetric_quantization_config(is_dynamic=False, weight_bits=bits))


@program
def weights_of_8_bits():
    return lowered(*linear(3, 16), quantizer=weights_only(8))


@program
def weights_of_4_bits():
    return lowered(*linear(3, 16), quantizer=weights_only(4))


def torchao(config, *shape):
    from torchao.quantization.quant_api import quantize_
    from torchao.utils import unwrap_tensor_subclass
    model, inputs = linear(*shape)
    quantize_(model, config)
    return lowered(unwrap_tensor_subclass(model), inputs)


@program
def groups_of_4_bits():
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_api import IntxWeightOnlyConfig
    return torchao(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(8)), 2, 32)


@program
def dynamic_8_bits():
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
    return torchao(Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(8)), 3, 32)


def static_int8():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))


@program
def integers():
    return lowered(Net(torch.nn.ReLU), image(), quantizer=static_int8())


@program
def integer_matrices():
    return lowered(*linear(3, 16), quantizer=static_int8())


@program
def most_sizes():
    dims = {2: torch.export.Dim("h", min=4, max=20), 3: torch.export.Dim("w", min=4, max=24)}
    return lowered(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1)), image(),
                   {"require_dynamic_shapes": True}, dynamic_shapes=({k: v for k, v in dims.items()},))


class Kept(torch.nn.Module):
    """The last of a signal, and a mean that moves."""

    def __init__(self):
        super().__init__()
        self.filter = torch.nn.Conv1d(4, 6, 3)
        self.register_buffer("last", torch.linspace(-1, 1, 8).view(1, 4, 2))
        self.register_buffer("level", torch.full((6,), 0.5))

    def forward(self, x):
        x = torch.cat([self.last, x], -1)
        self.last.copy_(x[:, :, -2:])
        y = self.filter(x)
        self.level.mul_(0.75).add_(y[0, :, 0])
        return torch.relu(y), self.level * 2


def kept(options, sizes=(5, 5, 5), **export):
    """The inputs and results of three runs, one after the other."""
    inputs, model = [torch.randn(1, 4, n) for n in sizes], Kept().requires_grad_(False)
    buffer, _, _ = lowered(copy.deepcopy(model), (inputs[0],), {"alias_buffer_mutations": True, **options}, **export)
    return buffer, inputs, [t for x in inputs for t in model(x)]


@program
def runs():
    return kept({})


@program
def runs_of_sizes():
    """With inputs of any size up to nine: the last run's are shorter than the others."""
    export = {"dynamic_shapes": ({2: torch.export.Dim("n", min=3, max=9)},)}
    return kept({"require_dynamic_shapes": True}, (5, 5, 3), **export)


@program
def runs_of_tokens():
    """Attention with ExecuTorch's caches, three tokens at a time, two queries to a key."""
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix, self.out = torch.nn.Linear(16, 64), torch.nn.Linear(32, 16)
            self.register_buffer("keys", torch.zeros(1, 12, 2, 8))
            self.register_buffer("values", torch.zeros(1, 12, 2, 8))

        def forward(self, x, places):
            q, k, v = self.mix(x).view(1, 3, 8, 8).split([4, 2, 2], 2)
            place = places[0].item()
            torch._check(place >= 0)
            torch._check(place <= 9)
            torch.ops.llama.update_cache(k, self.keys, place)
            torch.ops.llama.update_cache(v, self.values, place)
            seen = torch.ops.llama.custom_sdpa(q, self.keys, self.values, place, None, 0.0, True)
            return self.out(seen.reshape(1, 3, 32))

    model = Attention().requires_grad_(False)
    runs = [(torch.randn(1, 3, 16), torch.arange(place, place + 3)) for place in (0, 3, 6)]
    buffer, _, _ = lowered(copy.deepcopy(model), runs[0])
    return buffer, [t for run in runs for t in run], [model(*run) for run in runs]


@program
def runs_forgotten():
    """Without the flow's option the new contents are results of the payload for which the program has no place."""
    return lowered(Kept().requires_grad_(False), (torch.randn(1, 4, 5),))


def main():
    warnings.filterwarnings("ignore")
    STORED.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PROGRAMS:
        torch.manual_seed(0)
        buffer, inputs, outputs = PROGRAMS[name]()
        (STORED / f"{name}.pte").write_bytes(buffer)
        arrays = {f"in.{i}": t.numpy() for i, t in enumerate(inputs)}
        arrays |= {f"out.{i}": t.detach().numpy() for i, t in enumerate(outputs)}
        np.savez_compressed(STORED / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main()
