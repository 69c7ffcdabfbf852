# SPDX-License-Identifier: Apache-2.0
"""Nets that boards run: the other two of MLPerf Tiny (its keyword spotting and its autoencoder are among the quick models),
nets with states, branches and several methods."""
import pathlib
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
from make_models import pictures, populate
from mobilenet import conv_norm


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(cin, cout, 3, stride, act=nn.ReLU), conv_norm(cout, cout, 3))
        self.skip = conv_norm(cin, cout, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class ResNet8(nn.Module):
    """MLPerf Tiny's image classification: 32x32 pictures, ten classes."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_norm(3, 16, 3, act=nn.ReLU), Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.classifier = nn.Linear(64, 10)

    def forward(self, image):
        return torch.softmax(self.classifier(self.features(image).mean((2, 3))), 1)


class VisualWakeWords(nn.Module):
    """MLPerf Tiny's person detection: MobileNetV1 of a quarter of the width, 96x96 pictures."""

    def __init__(self):
        super().__init__()
        layers, cin = [conv_norm(3, 8, 3, 2, act=nn.ReLU)], 8
        for cout, stride in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]:
            layers += [conv_norm(cin, cin, 3, stride, cin, nn.ReLU), conv_norm(cin, cout, 1, act=nn.ReLU)]
            cin = cout
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(cin, 2)

    def forward(self, image):
        return torch.softmax(self.classifier(self.features(image).mean((2, 3))), 1)


class StreamingGru(nn.Module):
    """A step of a recurrent net, whose state stays between calls."""

    def __init__(self, features=20, width=32):
        super().__init__()
        self.cell = nn.GRUCell(features, width)
        self.out = nn.Linear(width, 4)
        self.register_buffer("state", torch.zeros(1, width))

    def forward(self, frame):
        self.state.copy_(self.cell(frame, self.state))
        return self.out(self.state)


class Encoder(nn.Module):
    """A block of a transformer: 16 tokens of 32 features, two heads."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads = heads

    def forward(self, x):
        n, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 4, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(n, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Pools(nn.Module):
    """Rows that no number of lanes divides, and windows that leave the picture."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 7, 3), nn.Conv2d(7, 3, 1)

    def forward(self, image):
        x = torch.relu(self.first(image))
        largest = nn.functional.max_pool2d(x, 3, 2, padding=1)
        mean = nn.functional.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False)
        y = torch.minimum(largest * mean, largest.abs() - mean)
        return self.last(y), y.amax(1), y.mean((2, 3))


class Mixed(nn.Module):
    """An operator in the middle that integers do not take, and an index as a result."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2)

    def forward(self, image):
        x = torch.relu(self.first(image))
        x = torch.sort(x.flatten(2), 2).values.reshape(x.shape)
        y = self.second(x).mean((2, 3))
        return y, torch.argmax(y, 1)


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v.cos() + 1, lambda v: v.sin() * 2, (x,))


def write(folder, name, model, make, samples=8):
    """NAME.pt2 and NAME.npz."""
    torch.manual_seed(0)
    model = populate(model, make)
    program = torch.export.export(model, (make(1),))
    torch.export.save(program, folder / f"{name}.pt2")
    import numpy as np
    argument = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"][0]
    np.savez(folder / f"{name}.npz", **{argument: torch.stack([make(1) for _ in range(samples)]).numpy()})


NETS = {
    "resnet8": (ResNet8, lambda n: pictures(n, 3, 32, 32)),
    "visual_wake_words": (VisualWakeWords, lambda n: pictures(n, 3, 96, 96)),
    "streaming_gru": (StreamingGru, lambda n: torch.randn(n, 20)),
    "encoder": (Encoder, lambda n: torch.randn(n, 16, 32)),
    "pools": (Pools, lambda n: pictures(n, 3, 12, 12)),
    "mixed": (Mixed, lambda n: pictures(n, 3, 12, 12)),
    "branch": (Branch, lambda n: torch.randn(n, 9)),
}
