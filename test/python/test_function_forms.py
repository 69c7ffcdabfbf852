# SPDX-License-Identifier: Apache-2.0
"""Functions with knees and jumps, and those that bend in a small part of a wide range, in 16 bits: as near to floats as their
operand's quantised values let them be, and the same on all devices."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import tosaic
from tosaic.executorch import TOSAQuantizer, TosaCompileSpec, get_symmetric_a16w8_quantization_config

pytestmark = pytest.mark.filterwarnings("ignore")

FUNCTIONS = {  # function, size of its operands, least dB
    "hardswish": (F.hardswish, 4, 78),
    "hardsigmoid": (F.hardsigmoid, 16, 78),
    "hardshrink": (F.hardshrink, 4, 78),
    "softshrink": (F.softshrink, 1, 76),
    "threshold": (lambda x: F.threshold(x, 0.5, -1.0), 4, 78),
    "round": (torch.round, 1, 80),
    "round to decimals": (lambda x: torch.round(x, decimals=1), 16, 60),
    "trunc": (torch.trunc, 1, 80),
    "floor": (torch.floor, 1, 80),
    "floor of many": (torch.floor, 16, 48),
    "ceil": (torch.ceil, 1, 80),
    "frac": (torch.frac, 1, 65),
    "tanh": (torch.tanh, 8, 74),
    "sigmoid": (torch.sigmoid, 16, 78),
    "erf": (torch.erf, 8, 72),
    "atan": (torch.atan, 16, 70),
    "asinh": (torch.asinh, 64, 72),
}


class Sum(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x + y)


def samples_of(size):
    torch.manual_seed(0)
    return [(torch.randn(1, 16, 32) * size, torch.randn(1, 16, 32) * size) for _ in range(5)]


def decibels(wanted, got):
    wanted, got = wanted.double(), got.double()
    return float(10 * torch.log10(wanted.square().sum() / (wanted - got).square().sum().clamp(min=1e-30)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_near_to_floats_and_equal_on_all_devices(name):
    function, size, least = FUNCTIONS[name]
    module, samples = Sum(function).eval(), samples_of(size)
    exported = torch.export.export(module, samples[0])
    found, *others = [tosaic.compile(exported, target=target, calibration=samples[1:], quantize="int16x8").run(*samples[0])
                      for target in ("tosa-int", "vulkan", "ethos-u55-128", "ethos-u85-256")]
    assert decibels(module(*samples[0]), found) > least
    assert all(torch.equal(other, found) for other in others)


@pytest.mark.parametrize("name", ["hardswish", "hardshrink", "round", "trunc", "tanh"])
def test_what_pt2e_quantised(name):
    function, size, _ = FUNCTIONS[name]
    samples = samples_of(size)
    program = torch.export.export(Sum(function).eval(), samples[0])
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT+int16")).set_global(get_symmetric_a16w8_quantization_config())
    prepared = prepare_pt2e(program.module(), quantizer)
    for sample in samples:
        prepared(*sample)
    program = torch.export.export(convert_pt2e(prepared), samples[0])
    found = tosaic.compile(program, target="tosa-int").run(*samples[0])
    assert decibels(program.module()(*samples[0]), found) > 60
