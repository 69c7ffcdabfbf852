# SPDX-License-Identifier: Apache-2.0
"""Rows unlike those of the calibration, in what divides them by a size of their own: quieter by up to a factor of 16, with
one spike, or all of one magnitude. Samples say nothing of them, mathematics does."""
import math

import pytest
import tosaic
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")
QUIETER = torch.tensor([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16])


class Function(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.modules_ = function, nn.ModuleList(modules)

    def forward(self, x):
        return self.function(x, *self.modules_)


def rows():
    return torch.randn(len(QUIETER), 20, 64)


def positive():
    return rows().abs()


def maps():
    return torch.randn(len(QUIETER), 16, 8, 8)


def heads():
    return torch.randn(len(QUIETER), 2, 16, 32)


FUNCTIONS = {
    "layer_norm": (Function(lambda x, norm: norm(x), nn.LayerNorm(64)), rows),
    "layer_norm_of_linear": (Function(lambda x, linear, norm: norm(linear(x)), nn.Linear(64, 64, bias=False),
                                      nn.LayerNorm(64)), rows),
    "rms_norm": (Function(lambda x, norm: norm(x), nn.RMSNorm(64, 1e-5)), rows),
    "group_norm": (Function(lambda x, norm: norm(x), nn.GroupNorm(4, 16)), maps),
    "instance_norm": (Function(lambda x, norm: norm(x), nn.InstanceNorm2d(16)), maps),
    "normalize": (Function(lambda x: F.normalize(x, dim=-1)), rows),
    "by_magnitudes": (Function(lambda x: F.normalize(x, p=1, dim=-1)), rows),
    "by_deviation": (Function(lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)), rows),
    "shares": (Function(lambda x: x / x.sum(-1, keepdim=True)), positive),
    "softmax": (Function(lambda x: x.softmax(-1)), rows),
    "log_softmax": (Function(lambda x: x.log_softmax(-1)), rows),
    "logsumexp": (Function(lambda x: x.logsumexp(-1)), rows),
    "attention": (Function(lambda x: F.scaled_dot_product_attention(x, x, x)), heads),
}
ELSEWHERE = ("layer_norm", "softmax")


def decibels(wanted, got, at=0):
    """Of each index along dim 0."""
    dims = tuple(range(1, wanted.dim()))
    return 10 * torch.log10(wanted.square().sum(dims) / (wanted - got).square().sum(dims).clamp_min(1e-30))


def in_codes(x, like, scheme):
    """x in the quantised values of a tensor that the samples show as `like`."""
    if scheme == "int8":
        step = (like.max().clamp_min(0) - like.min().clamp_max(0)) / 255
    else:
        step = 1.5 * like.abs().max() / 32767
    return (x / step).round() * step


def compiled(name, scheme, target):
    torch.manual_seed(7)
    module, make = FUNCTIONS[name]
    samples = [make() for _ in range(8)]
    artifact = tosaic.compile(module.eval(), samples[0], target, calibration=samples, quantize=scheme,
                              require_full_delegation=True)
    return artifact, module, samples, make


def keeps_up(name, scheme, target):
    """Within 3 dB of what loud rows have, less the 6 dB per halving that the input's own step costs; or less what
    quantised values of input and output alone cost: the mean of flatter weights is smaller, and its step is not."""
    artifact, module, samples, make = compiled(name, scheme, target)
    x = make()
    x = x * QUIETER.view(-1, *[1] * (x.dim() - 1))
    with torch.no_grad():
        wanted = module(x)
        alone = decibels(wanted, in_codes(module(in_codes(x, torch.stack(samples), scheme)),
                                          torch.stack([module(s) for s in samples]), scheme))
    found = decibels(wanted, artifact.run(x))
    assert found[0] > (30 if scheme == "int8" else 44)
    for i, here in enumerate(found.tolist()):
        bar = found[0].item() - max(20 * math.log10(2) * i, (alone[0] - alone[i]).item()) - 3
        assert here >= bar, f"{name} in {scheme}, rows of 1/{2**i}: {here:.1f} dB, not {bar:.1f}: {found.tolist()}"


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_quiet_rows(name, scheme):
    keeps_up(name, scheme, "tosa-int")


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256", "vulkan"])
@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_quiet_rows_elsewhere(name, scheme, target):
    keeps_up(name, scheme, target)


@pytest.mark.parametrize("scheme, least", [("int8", 35), ("int16x8", 70)])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm", "instance_norm", "normalize", "by_deviation"])
def test_rows_of_one_magnitude(name, scheme, least):
    """Scaled rows have a size that no sample has."""
    artifact, module, _, make = compiled(name, scheme, "tosa-int")
    x = make().sign()
    with torch.no_grad():
        assert decibels(module(x), artifact.run(x)).min() > least


@pytest.mark.parametrize("scheme, least", [("int8", 18), ("int16x8", 55)])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "by_deviation"])
def test_rows_with_a_spike(name, scheme, least):
    """As large as the results of the samples have it: beyond, the output itself saturates."""
    artifact, module, _, make = compiled(name, scheme, "tosa-int")
    x = 0.5 * make()
    x[..., 3] = 2.0
    with torch.no_grad():
        wanted = module(x)
    assert decibels(wanted, artifact.run(x)).min() > least


def test_a_factor_that_is_shown_has_its_own_codes():
    """1/sigma leaves the program in 8 bits, and rows are not multiplied by these."""

    class Shown(nn.Module):
        def forward(self, x):
            return torch.native_layer_norm(x, [64], None, None, 1e-5)

    torch.manual_seed(7)
    samples = [rows() for _ in range(4)]
    artifact = tosaic.compile(Shown(), samples[0], "tosa-int", calibration=samples)
    x = rows() * QUIETER.view(-1, 1, 1)
    wanted, got = Shown()(x), artifact.run(x)
    found = decibels(wanted[0], got[0])
    assert found[0] > 36 and found[2] > 25, found
    assert decibels(wanted[2][:1], got[2][:1]).min() > 36


@pytest.mark.parametrize("scheme, least", [("int8", 24), ("int16x8", 40)])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "normalize", "by_deviation"])
def test_rows_of_zeros_among_unlike_ones(name, scheme, least):
    """Without what keeps them from 0 * rsqrt(0), floats of scaled rows are NaN, and what reads all rows has no range."""
    functions = {"layer_norm": Function(lambda x, norm: norm(x), nn.LayerNorm(64, 1e-12)),
                 "rms_norm": Function(lambda x, norm: norm(x), nn.RMSNorm(64, 1e-12)),
                 "normalize": Function(lambda x: 8 * F.normalize(x, dim=-1)),
                 "by_deviation": Function(lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-12))}
    torch.manual_seed(7)
    model = nn.Sequential(functions[name], Function(lambda x: F.scaled_dot_product_attention(x, x, x)), nn.Linear(64, 64)).eval()
    samples = [rows() for _ in range(8)]
    for x in samples:
        x[:, 3] = 0
        x[:, 5] *= 0.05
    artifact = tosaic.compile(model, samples[0], "tosa-int", calibration=samples, quantize=scheme)
    x = samples[0]
    with torch.no_grad():
        wanted = model(x)
    assert decibels(wanted, artifact.run(x)).min() > least
