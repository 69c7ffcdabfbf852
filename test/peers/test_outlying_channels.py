# SPDX-License-Identifier: Apache-2.0
"""Channels far larger than the others, of which the reader makes little: the residual stream of trained language models
(MiniLM: one channel of 384 reaches 250 times as far as the median of the others), and what depthwise convolutions read
in detectors with hardswish (PicoDet, PP-LCNet). PyTorch is the oracle."""
import pytest
import torch
from test_ranges import compiled_and_run, decibels
from torch import nn
from torch.nn import functional

WIDTH = 64


class Stream(nn.Module):
    """Layers of a BERT: each adds to the stream and normalises it. One channel grows, and the norm's weight takes it
    back, as in trained ones."""

    def __init__(self, suppressed):
        super().__init__()
        torch.manual_seed(2)
        self.grow = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        with torch.no_grad():
            for layer, norm in zip(self.grow, self.norms):
                layer.bias[7] += 60
                norm.weight[7] = suppressed
                norm.weight.mul_(3)

    def forward(self, x):
        for layer, norm in zip(self.grow, self.norms):
            x = norm(x + functional.gelu(layer(x)))
        return x


class Depthwise(nn.Module):
    """Hardswish, and a depthwise convolution whose weights bring the channels to one size."""

    def __init__(self, factor):
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        sizes = torch.logspace(0, 1, 16) ** factor
        with torch.no_grad():
            self.first.weight.mul_(sizes[:, None, None, None])
            self.second.weight.div_(sizes[:, None, None, None])

    def forward(self, x):
        return self.second(functional.hardswish(self.first(x)))


def result(tool, folder, net, shape, *options):
    folder.mkdir()
    torch.manual_seed(0)
    samples = [(torch.randn(shape),) for _ in range(8)]
    wanted, found, _ = compiled_and_run(tool, folder, net, samples, (torch.randn(shape),), "--quantize", "int8", *options)
    return decibels(wanted[0], found[0])


@pytest.mark.parametrize("net, shape, floor, gain", [
    (Stream(0.01), (1, 12, WIDTH), 36, 15),
    (Depthwise(2), (1, 3, 16, 16), 30, 15),
])
def test_the_others_keep_their_bits(tool, tmp_path, net, shape, floor, gain):
    found = result(tool, tmp_path / "wide", net, shape)
    before = result(tool, tmp_path / "narrow", net, shape, "--no-widen-steep")
    assert found >= floor
    assert found >= before + gain


class Scaled(nn.Module):
    """A norm whose weight is a number."""

    def forward(self, x):
        return functional.scaled_dot_product_attention(*[8 * functional.normalize(x, dim=-1)] * 3)


def test_a_number_is_no_weight(tool, tmp_path):
    assert result(tool, tmp_path / "scaled", Scaled(), (1, 12, WIDTH)) >= 24


@pytest.mark.parametrize("net, shape", [(Stream(1), (1, 12, WIDTH)), (Depthwise(0.3), (1, 3, 16, 16))])
def test_channels_that_the_reader_leaves_as_they_are_have_8_bits(tool, tmp_path, net, shape):
    found = result(tool, tmp_path / "wide", net, shape)
    before = result(tool, tmp_path / "narrow", net, shape, "--no-widen-steep")
    assert found == before
