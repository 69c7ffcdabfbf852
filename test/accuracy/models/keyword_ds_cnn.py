# SPDX-License-Identifier: Apache-2.0
"""A keyword spotter of depthwise separable convolutions, trained here on keywords.py's ten words."""
from torch import nn

import keywords
import voices
from model import trained


def layer(a, b, kernel, **how):
    return nn.Sequential(nn.Conv2d(a, b, kernel, bias=False, **how), nn.BatchNorm2d(b), nn.ReLU())


class DsCnn(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        blocks = [layer(width, width, k, padding=p, groups=g) for _ in range(4) for k, p, g in ((3, 1, width), (1, 0, 1))]
        self.body = nn.Sequential(layer(1, width, (8, 4), stride=2, padding=(3, 1)), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(width, len(keywords.WORDS))

    def forward(self, x):
        return self.head(self.body(x[:, None]))


def train(module, tuning=False):
    keywords.train(module, 300, 5e-3, tuning)


def model(rng):
    return keywords.model(trained(DsCnn, train, keywords, voices), rng, train)
