# SPDX-License-Identifier: Apache-2.0
"""Programs that PT2E quantised, by the quantizers of ExecuTorch and torchao: what they give as floats stays floats, and
is what the converted module gives in PyTorch, within a step where integers round."""
import functools
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
import torch.nn.functional as F
from torch import nn

from steps import step_of

pytestmark = pytest.mark.by_turns(2)


class Ends(nn.Module):
    """A convolution, and something behind its dequantise."""

    def __init__(self, end):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.end = end

    def forward(self, x):
        return self.end(self.conv(x))


class Averages(nn.Module):
    """What is averaged lies far beyond the averages' own range, and is quantised only after them."""

    def __init__(self, average):
        super().__init__()
        self.average = average
        self.head = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        return self.head(self.average(F.relu(x)))


ENDS = {
    "reshape": lambda y: y.reshape(1, -1),
    "relu": F.relu,
    "max_pool": lambda y: F.max_pool2d(y, 2),
    "avg_pool": lambda y: F.avg_pool2d(y, 2),
    "adaptive_avg_pool": lambda y: F.adaptive_avg_pool2d(y, 4),
    "sums_of_windows": lambda y: F.avg_pool2d(y, 2, divisor_override=1),
    "two": lambda y: (y.reshape(1, -1), F.relu(y)),
    "integers": lambda y: F.relu(y).round().to(torch.int32),
    "largest": lambda y: y.flatten(1).argmax(1),
}
AVERAGES = {
    "avg_pool": lambda y: F.avg_pool2d(y, 4),
    "adaptive_avg_pool": lambda y: F.adaptive_avg_pool2d(y, 1),
    "bilinear": lambda y: F.interpolate(y, scale_factor=0.25, mode="bilinear"),
}


def quantizer(name):
    if name == "xnnpack" or name == "xnnpack-dynamic":
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
        return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic="dynamic" in name))
    if name.startswith("x86"):
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
        return x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic="dynamic" in name))
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    return TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(get_symmetric_quantization_config(is_per_channel=True))


def convert(module, example, by):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    torch.manual_seed(5)
    prepared = prepare_pt2e(torch.export.export(module.eval(), example).module(check_guards=False), quantizer(by))
    for _ in range(3):
        prepared(*[torch.randn_like(e) for e in example])
    return convert_pt2e(prepared)


@functools.cache
def image():
    return (torch.linspace(-2, 2, 3 * 64).reshape(1, 8, 8, 3).permute(0, 3, 1, 2).contiguous(),)


def compare(converted, example, folder, tool, steps, *options):
    """Each output within `steps` of the largest scale of the program, of PyTorch's dtype; says what compile said."""
    program = torch.export.export(converted, example)
    torch.export.save(program, folder / "m.pt2")
    said = tool("compile", folder / "m.pt2", "--target", "tosa-int", "-o", folder / "m.pte", *options)
    expected = converted(*example)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, e in zip(tool.run(folder / "m.pte", [x.numpy() for x in example], folder), expected, strict=True):
        e = e.detach().numpy()
        assert found.dtype == e.dtype and found.shape == e.shape
        if e.dtype == np.float32:
            np.testing.assert_allclose(found, e, rtol=0, atol=steps * step_of(program))
        else:
            np.testing.assert_array_equal(found, e)
    return said


@pytest.mark.parametrize("end, by", [(end, "xnnpack") for end in ENDS] + [("reshape", "arm"), ("avg_pool", "arm")])
def test_floats_stay_floats(end, by, tool, tmp_path):
    compare(convert(Ends(ENDS[end]), image(), by), image(), tmp_path, tool, 4.01 if end == "sums_of_windows" else 1.01)


@pytest.mark.parametrize("average", AVERAGES)
def test_averages_do_not_narrow_what_they_average(average, tool, tmp_path):
    compare(convert(Averages(AVERAGES[average]), image(), "xnnpack"), image(), tmp_path, tool, 1.01)


def test_unsigned_codes(tool, tmp_path):
    """torchao's quantizer for x86 has activations of uint8. The last layer's result has no scale: it stays float."""
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1))
    said = compare(convert(network, image(), "x86"), image(), tmp_path, tool, 1.01)
    assert "delegated  5 of 6" in said, said
