# SPDX-License-Identifier: Apache-2.0
"""The microcontroller nets: keyword spotting (arXiv:1711.07128), an auto-encoder, and a U-Net (arXiv:1505.04597)."""
import torch
from torch import nn


class KeywordSpotting(nn.Module):
    """DS-CNN over 49 frames of 10 MFCC features; a rectangular kernel and stride at the door."""

    def __init__(self, channels=64, words=12):
        super().__init__()
        layers = [nn.Conv2d(1, channels, (10, 4), (2, 2), (5, 1), bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
        for _ in range(4):
            layers += [nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
                       nn.BatchNorm2d(channels), nn.ReLU(),
                       nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
        self.features = nn.Sequential(*layers, nn.Dropout(0.4))
        self.classifier = nn.Linear(channels, words)

    def forward(self, mfcc):
        x = self.features(mfcc)
        x = nn.functional.avg_pool2d(x, x.shape[-2:])
        return torch.softmax(self.classifier(x.view(x.shape[0], -1)), dim=-1)


class AutoEncoder(nn.Module):
    """Machine sound anomaly detection: 640 features, a bottleneck of 8; linear, batch norm and relu only."""

    def __init__(self, features=640, width=128, bottleneck=8):
        super().__init__()
        sizes = [features, width, width, width, width, bottleneck, width, width, width, width]
        layers = []
        for cin, cout in zip(sizes, sizes[1:]):
            layers += [nn.Linear(cin, cout), nn.BatchNorm1d(cout), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(width, features))

    def forward(self, spectrum):
        return self.layers(spectrum)


def double_conv(cin, cout):
    layers = []
    for c in (cin, cout):
        layers += [nn.Conv2d(c, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three levels; one way up is a transposed convolution, the next bilinear, the last nearest upsampling."""

    def __init__(self, width=8, classes=2):
        super().__init__()
        w = width
        self.down1, self.down2, self.down3 = double_conv(3, w), double_conv(w, 2 * w), double_conv(2 * w, 4 * w)
        self.bottom = double_conv(4 * w, 8 * w)
        self.up3 = nn.ConvTranspose2d(8 * w, 4 * w, 2, stride=2)
        self.join3 = double_conv(8 * w, 4 * w)
        self.up2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join2 = double_conv(6 * w, 2 * w)
        self.up1 = nn.Upsample(scale_factor=2, mode="nearest")
        self.join1 = double_conv(3 * w, w)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(w, classes, 1)

    def forward(self, image):
        a = self.down1(image)
        b = self.down2(self.pool(a))
        c = self.down3(self.pool(b))
        x = self.bottom(self.pool(c))
        x = self.join3(torch.cat([c, self.up3(x)], dim=1))
        x = self.join2(torch.cat([b, self.up2(x)], dim=1))
        x = self.join1(torch.cat([a, self.up1(x)], dim=1))
        return torch.sigmoid(self.head(x))
