# SPDX-License-Identifier: Apache-2.0
"""`tosaic.executorch.calibrate`: between prepare_pt2e and convert_pt2e it keeps the mean of every layer's channels."""
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

import tosaic
from tosaic.executorch import TOSAQuantizer, calibrate, get_symmetric_quantization_config


class Mixed(nn.Module):
    """A convolution with a batch norm, one by channel, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(),
                                  nn.Conv2d(8, 8, 3, stride=2, groups=8), nn.ReLU6())
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def prepared(prepare=prepare_pt2e):
    torch.manual_seed(3)
    model = Mixed()
    model = model.train() if prepare is prepare_qat_pt2e else model.eval()
    samples = [(torch.randn(1, 3, 12, 12) + 1,) for _ in range(6)]
    quantizer = TOSAQuantizer("TOSA-1.0+INT").set_global(
        get_symmetric_quantization_config(is_qat=prepare is prepare_qat_pt2e))
    return prepare(torch.export.export(model, samples[0]).module(), quantizer), model, samples


def mean_error(model, converted, samples):
    with torch.no_grad():
        return torch.cat([converted(*s) - model(*s) for s in samples]).mean(0).abs().max().item()


def test_it_keeps_means():
    program, model, samples = prepared()
    usual = mean_error(model, convert_pt2e(calibrate(program, samples, bias_correction=False)), samples)
    program, model, samples = prepared()
    corrected = mean_error(model, convert_pt2e(calibrate(program, samples)), samples)
    step = 1 / 128  # of the result, which is in -1..1: no correction can see less
    assert corrected < max(usual / 2, step), (usual, corrected)


def test_a_tensor_stands_for_the_only_argument():
    a, _, samples = prepared()
    b, _, _ = prepared()
    x = samples[0][0]
    given = calibrate(a, [s[0] for s in samples]), calibrate(b, samples)
    assert torch.equal(convert_pt2e(given[0])(x), convert_pt2e(given[1])(x))


def test_bad_input():
    program, _, samples = prepared()
    with pytest.raises(tosaic.Error, match="calibrate.no-samples"):
        calibrate(program, [])
    program, _, samples = prepared(prepare_qat_pt2e)
    with pytest.raises(tosaic.Error, match="quantizer.program"):
        calibrate(program, samples)
