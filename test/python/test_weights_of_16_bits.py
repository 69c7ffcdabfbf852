# SPDX-License-Identifier: Apache-2.0
"""`weights="int16"`: a layer of int16x8 as the sum of two, whose weights have 16 bits together. And channels that training
left dead, whose weights would leave their biases no room."""
import pytest
import torch
from torch import nn

import tosaic


def decibels(wanted, got):
    return (10 * torch.log10((wanted**2).sum() / ((wanted - got) ** 2).sum())).item()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.layer(x)[0])


NETS = {
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Hardswish(), nn.Conv2d(16, 16, 3, groups=16),
                                           nn.ConvTranspose2d(16, 8, 2, stride=2), nn.ReLU(), nn.Conv2d(8, 4, 1)), (1, 3, 12, 12)),
    "linear": (lambda: nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)), (4, 32)),
    "recurrent": (Recurrent, (1, 6, 16)),
}


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u85-256"])
@pytest.mark.parametrize("name", NETS)
def test_they_are_much_nearer_to_floats(name, target):
    torch.manual_seed(1)
    make, shape = NETS[name]
    model = make().eval()
    samples = [(torch.randn(shape),) for _ in range(8)]
    found = {}
    for weights in ("per-channel", "int16"):
        artifact = tosaic.compile(model, samples[0], target, quantize="int16x8", calibration=samples, weights=weights)
        assert artifact.summary.delegates == 1
        found[weights] = decibels(model(*samples[2]).detach(), artifact.run(*samples[2]))
    assert found["int16"] > max(58, found["per-channel"] + 8), found


@pytest.mark.parametrize("target, options", [("tosa-int", {"quantize": "int8"}), ("tosa-fp", {})])
def test_they_go_with_activations_of_16_bits(target, options):
    x = torch.randn(4, 32)
    with pytest.raises(tosaic.Error, match="activations of 16") as refused:
        tosaic.compile(nn.Linear(32, 4), (x,), target, weights="int16", calibration=[(x,)], **options)
    assert refused.value.code == "option.weights" and "int16x8" in refused.value.help


@pytest.mark.parametrize("scheme, least", [("int8", 30), ("int16x8", 45)])
def test_dead_channels_keep_their_biases(scheme, least):
    torch.manual_seed(4)
    layer = nn.Conv2d(384, 384, 1)
    with torch.no_grad():
        layer.weight[3] = torch.randn(384, 1, 1) * 1e-15
        layer.bias[3] = 4
    model = nn.Sequential(layer, nn.ReLU(), nn.Conv2d(384, 4, 1)).eval()
    samples = [(torch.randn(1, 384, 4, 4),) for _ in range(8)]
    artifact = tosaic.compile(model, samples[0], "tosa-int", quantize=scheme, calibration=samples)
    assert artifact.summary.delegates == 1 and all(n.taken for n in artifact.summary.nodes)
    assert decibels(model(*samples[1]).detach(), artifact.run(*samples[1])) > least
