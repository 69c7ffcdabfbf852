# SPDX-License-Identifier: Apache-2.0
"""EDSR: photographs of twice the width and height. Trained here on eleven of scikit-image's pictures; three others, and
scikit-learn's two, are the test. The task: PSNR against the photograph."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import photographs
from model import Model, fit, trained

TEST = [0, 2, 3, 14, 15]  # astronaut, coffee, motorcycle, china, flower
CHANNELS, SMALL = 32, 48


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x)))


class Edsr(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.body = nn.Sequential(*(Block() for _ in range(4)), nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(CHANNELS, 4 * CHANNELS, 3, padding=1), nn.PixelShuffle(2),
                                  nn.Conv2d(CHANNELS, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x - 0.5)
        return self.tail(x + self.body(x)) + 0.5


def pairs(rng, pictures, size, count):
    """Parts of the pictures at half their size, and at their own."""
    small, large = [], []
    for i in range(count):
        pixels = np.asarray(pictures[i % len(pictures)], np.float32) / 255
        top, left = (int(rng.integers(0, length - 2 * size + 1)) for length in pixels.shape[:2])
        part = torch.from_numpy(pixels[top:top + 2 * size, left:left + 2 * size].transpose(2, 0, 1)[None].copy())
        small.append(F.interpolate(part, (size, size), mode="bicubic", antialias=True).clamp(0, 1))
        large.append(part)
    return torch.cat(small), torch.cat(large)


def train(module, tuning=False):
    pictures = [p for i, p in enumerate(photographs.pictures()) if i not in TEST]
    small, large = pairs(np.random.default_rng(1), pictures, 24, 1000)
    fit(module, lambda batch: F.l1_loss(module(small[batch]), large[batch]),
        [torch.randint(len(small), (8,)) for _ in range(700)], 3e-3, tuning)


def model(rng):
    pictures = photographs.pictures()
    calibration, _ = pairs(rng, [p for i, p in enumerate(pictures) if i not in TEST], SMALL, 22)
    small, large = pairs(rng, [pictures[i] for i in TEST], SMALL, 30)

    def score(results):
        error = np.mean([(r[0][0].clip(0, 1) - picture) ** 2 for r, picture in zip(results, large.numpy())])
        return float(-10 * np.log10(error))
    return Model(trained(Edsr, train, photographs), [(c,) for c in calibration.split(1)], [(s,) for s in small.split(1)],
                 "PSNR, dB", score, train=train)
