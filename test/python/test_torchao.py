# SPDX-License-Identifier: Apache-2.0
"""Models that torchao's quantize_ made: weights of 8 and 4 bits, activations of 8 that are quantised as they come."""

import pytest
import torch
import torchao.quantization as ao
import tosaic
from torch import nn
from torchao.utils import unwrap_tensor_subclass

pytestmark = pytest.mark.filterwarnings("ignore")
GROUPS = ao.PerGroup(32)
# Name -> (configuration, how near our result is to theirs in dB).
CONFIGS = {
    "weights of 8": (lambda: ao.Int8WeightOnlyConfig(), 120),
    "weights of 4 in groups": (lambda: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=GROUPS), 120),
    # Their scale makes the largest element 127.5 steps, a tie that the last bit of a division decides.
    "both of 8": (lambda: ao.Int8DynamicActivationInt8WeightConfig(), 38),
    # Activations stay floats (model.dynamic-scales).
    "8 and 4 in groups": (lambda: ao.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4,
                                                                             weight_granularity=GROUPS), 38),
}


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(64, 128, bias=False), nn.Linear(64, 128), nn.Linear(128, 32)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def decibels(wanted, got):
    return (10 * torch.log10(wanted.square().mean() / (wanted - got).square().mean().clamp(1e-30))).item()


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
@pytest.mark.parametrize("name", CONFIGS)
def test_compiled_from_memory_and_file(name, target, tmp_path):
    config, near = CONFIGS[name]
    torch.manual_seed(0)
    model, x = Gated().eval(), torch.randn(2, 17, 64)
    floats = model(x).detach()
    ao.quantize_(model, config())
    unwrap_tensor_subclass(model)
    theirs, program = model(x).detach(), torch.export.export(model, (x,), strict=False)
    torch.export.save(program, tmp_path / "m.pt2")
    ours = [tosaic.compile(source, target=target).run(x) for source in (program, tmp_path / "m.pt2")]
    assert torch.equal(*ours)
    assert decibels(theirs, ours[0]) > near
    assert decibels(floats, ours[0]) > decibels(floats, theirs) - 0.2


def test_products_of_unsigned_codes_run():
    """Not as torchao writes them: no int8 quantised values lie behind these."""
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randint(-128, 128, (16, 8), dtype=torch.int8))

        def forward(self, x):
            return torch._int_mm(x, self.weight)

    x = torch.randint(0, 256, (17, 16), dtype=torch.uint8)
    program = torch.export.export(Product(), (x,))
    assert torch.equal(tosaic.Program.of(program).session().run(x), program.module()(x))


def test_tensors_of_several_tensors_are_refused():
    model, x = Gated().eval(), torch.randn(1, 64)
    ao.quantize_(model, ao.Int8WeightOnlyConfig())
    with pytest.raises(tosaic.Error, match="unwrap_tensor_subclass") as refused:
        tosaic.compile(torch.export.export(model, (x,)), target="tosa-fp")
    assert refused.value.code == "program.tensor-class"
