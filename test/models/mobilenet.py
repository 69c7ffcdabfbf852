# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 and MobileNetV3-small, after the tables of their papers (arXiv:1801.04381, arXiv:1905.02244)."""
import torch
from torch import nn


def eight(x):
    """Channel counts are multiples of 8, and never lose more than a tenth."""
    y = max(8, int(x + 4) // 8 * 8)
    return y + 8 if y < 0.9 * x else y


def conv_norm(cin, cout, kernel=1, stride=1, groups=1, act=None):
    layers = [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        squeezed = eight(channels / 4)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x):
        return x * self.gate(self.expand(self.act(self.reduce(self.pool(x)))))


class Inverted(nn.Module):
    """Expand, filter per channel, (squeeze and excite), project; added to the input where shapes allow."""

    def __init__(self, cin, cout, kernel, stride, hidden, act, squeeze=False):
        super().__init__()
        layers = [] if hidden == cin else [conv_norm(cin, hidden, act=act)]
        layers.append(conv_norm(hidden, hidden, kernel, stride, groups=hidden, act=act))
        if squeeze:
            layers.append(SqueezeExcite(hidden))
        layers.append(conv_norm(hidden, cout))
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV2(nn.Module):
    TABLE = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

    def __init__(self, classes=1000):
        super().__init__()
        layers, cin = [conv_norm(3, 32, 3, 2, act=nn.ReLU6)], 32
        for expansion, cout, count, stride in self.TABLE:
            for i in range(count):
                layers.append(Inverted(cin, cout, 3, stride if i == 0 else 1, cin * expansion, nn.ReLU6))
                cin = cout
        layers.append(conv_norm(cin, 1280, act=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, image):
        x = nn.functional.adaptive_avg_pool2d(self.features(image), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class MobileNetV3Small(nn.Module):
    # kernel, hidden, out, squeeze, hardswish, stride
    TABLE = [(3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2),
             (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1),
             (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1)]

    def __init__(self, classes=1000):
        super().__init__()
        layers, cin = [conv_norm(3, 16, 3, 2, act=nn.Hardswish)], 16
        for kernel, hidden, cout, squeeze, hardswish, stride in self.TABLE:
            layers.append(Inverted(cin, cout, kernel, stride, hidden, nn.Hardswish if hardswish else nn.ReLU, squeeze))
            cin = cout
        layers.append(conv_norm(cin, 576, act=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True),
                                        nn.Linear(1024, classes))

    def forward(self, image):
        return self.classifier(torch.flatten(self.pool(self.features(image)), 1))
