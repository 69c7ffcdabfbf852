# SPDX-License-Identifier: Apache-2.0
"""Block-scaled layers: what ExecuTorch's `to_mxfp` and torchao's `quantize_` make, against how they compute it themselves."""

import pytest
import torch
import torchao.quantization as ao
import tosaic
from executorch.backends.arm.ao_ext import MXFPOpConfig, to_mxfp
from torch import nn
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.inference_workflow import MXDynamicActivationMXWeightConfig
from torchao.prototype.mx_formats.mx_tensor import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.quantization.quantize_.common.kernel_preference import KernelPreference

pytestmark = pytest.mark.filterwarnings("ignore")
ELEMENTS = {"fp8e4m3": torch.float8_e4m3fn, "fp8e5m2": torch.float8_e5m2, "fp6e2m3": DTYPE_FP6_E2M3,
            "fp6e3m2": DTYPE_FP6_E3M2, "fp4": torch.float4_e2m1fn_x2}


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.hidden, self.last = nn.Linear(64, 96), nn.Linear(96, 10, bias=False)

    def forward(self, x):
        return self.last(nn.functional.gelu(self.hidden(self.conv(x).relu().mean((2, 3)))))


def decibels(wanted, got):
    return (10 * torch.log10(wanted.square().mean() / (wanted - got).square().mean().clamp(1e-30))).item()


def converted(element, dtype=torch.float32):
    torch.manual_seed(0)
    model, x = Layers().eval().to(dtype), torch.randn(2, 32, 12, 12).to(dtype)
    to_mxfp(model, MXFPOpConfig(weight_dtype=ELEMENTS[element]))
    return model, x


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_executorchs_layers(element, target, tmp_path):
    model, x = converted(element)
    program = torch.export.export(model, (x,), strict=False)
    torch.export.save(program, tmp_path / "m.pt2")
    artifact = tosaic.compile(tmp_path / "m.pt2", target=target)
    assert artifact.summary.delegated == len(artifact.summary.nodes)
    # A sum in another order now and then moves an activation to the neighbouring element.
    assert decibels(model(x).detach(), artifact.run(x)) > 30


@pytest.mark.parametrize("element", ELEMENTS)
def test_in_operators_of_tosa_1_1(element, tmp_path):
    model, x = converted(element)
    artifact = tosaic.compile(model, x, target="tosa-fp", tosa_spec="TOSA-1.1+FP+mxfp")
    assert decibels(model(x).detach(), artifact.run(x)) > 30
    bits = {"fp4": 4, "fp6e2m3": 6, "fp6e3m2": 6}.get(element, 8)
    elements = sum(p.numel() for p in Layers().parameters() if p.dim() > 1)
    assert len(artifact.pte) < elements * bits / 8 + 15_000


def test_half_precision():
    model, x = converted("fp8e4m3", torch.bfloat16)
    got = tosaic.compile(model, x, "tosa-fp").run(x)
    assert got.dtype == torch.bfloat16
    assert decibels(model(x).detach().float(), got.float()) > 25


def by_torchao(model, element, **how):
    ao.quantize_(model, MXDynamicActivationMXWeightConfig(activation_dtype=ELEMENTS[element], weight_dtype=ELEMENTS[element],
                                                          kernel_preference=KernelPreference.EMULATED, **how))
    return model


@pytest.mark.parametrize("element", ["fp8e4m3", "fp4"])
def test_torchaos_layers(element):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32)).eval().bfloat16(), torch.randn(5, 64).bfloat16()
    by_torchao(model, element)
    wanted = model(x).detach().float()
    got = tosaic.compile(model, x, "tosa-fp").run(x)
    assert decibels(wanted, got.float()) > 25
    assert type(model[0].weight).__name__ == "MXTensor"  # the model is as it was


def test_another_rounding_is_refused_with_the_way_out():
    """TOSA rounds scales up; torch.export itself takes none of torchao's tensors apart."""
    model, x = nn.Sequential(nn.Linear(64, 32)).eval().bfloat16(), torch.randn(1, 64).bfloat16()
    by_torchao(model, "fp8e4m3", scaling_mode=ScaleCalculationMode.FLOOR)
    with pytest.raises(tosaic.Error, match=r"'0.weight' .* MXTensor.*\n.*\n.*get_parameter\('0.weight'\).dequantize") as refused:
        tosaic.compile(model, x, "tosa-fp")
    assert refused.value.code == "program.tensor-class"
    model[0].weight = torch.nn.Parameter(model[0].weight.dequantize(), requires_grad=False)
    torch.testing.assert_close(tosaic.compile(model, x, "tosa-fp").run(x), model(x), rtol=0.02, atol=0.02)


def test_weights_of_4_bits_stay_small():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(256, 512)).eval(), torch.randn(3, 256)
    to_mxfp(model, MXFPOpConfig(weight_dtype=ELEMENTS["fp4"]))
    for target in ("tosa-fp", "vulkan"):
        artifact = tosaic.compile(model, x, target=target)
        assert len(artifact.pte) < 1.4 * 256 * 512, target
        assert decibels(model(x).detach(), artifact.run(x)) > 100


def test_inputs_of_all_magnitudes():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 8)).eval()
    to_mxfp(model, MXFPOpConfig(weight_dtype=torch.float8_e4m3fn))
    artifact = tosaic.compile(model, torch.zeros(3, 64), "tosa-fp")
    for scale in (0, 1e-30, 1e-6, 1, 448, 1e6, 1e30):
        x = scale * torch.randn(3, 64, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(artifact.run(x), model(x).detach(), rtol=1e-4, atol=1e-5 * scale)
