# SPDX-License-Identifier: Apache-2.0
"""A vision transformer of six layers on patches of 2 x 2 pixels, trained here on scikit-learn's handwritten digits."""
import numpy as np
import torch
import torch.nn.functional as F

import digits
import transformer
from model import Model, fit, trained


class Vit(transformer.Encoder):
    def __init__(self):
        super().__init__(16, 4, 10, 64, 6)

    def forward(self, images):
        return super().forward(images.view(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, 16, 4))


def train(module, tuning=False):
    images, labels = digits.split()[0]

    def loss(batch):
        noisy = images[batch] + 0.1 * torch.randn(len(batch), 8, 8)
        return F.cross_entropy(module(noisy), labels[batch], label_smoothing=0.05)
    fit(module, loss, [torch.randint(len(labels), (48,)) for _ in range(700)], 2e-3, tuning)


def model(rng):
    net = trained(Vit, train, digits, transformer)
    calibration, test, labels = digits.drawn(rng)

    def score(results):
        return 100 * float(np.mean([r[0].argmax() == label for r, label in zip(results, labels.numpy())]))
    return Model(net, [(c,) for c in calibration.split(1)], [(t,) for t in test.split(1)], "right, %", score, train=train)
