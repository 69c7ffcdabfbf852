# SPDX-License-Identifier: Apache-2.0
"""An autoencoder of convolutions with 16 numbers in its middle, trained here on scikit-learn's handwritten digits."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import digits
from model import Model, fit, trained


def net():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(512, 16), nn.Linear(16, 512), nn.ReLU(), nn.Unflatten(1, (32, 4, 4)),
                         nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1), nn.Sigmoid())


def train(module, tuning=False):
    images = digits.split()[0][0][:, None]
    # Rounded results are exactly 0 or 1, too, where the slope of the entropy has no bounds.
    error = F.mse_loss if tuning else F.binary_cross_entropy
    fit(module, lambda batch: error(module(images[batch]), images[batch]),
        [torch.randint(len(images), (64,)) for _ in range(1200)], 5e-3, tuning)


def model(rng):
    calibration, test, _ = digits.drawn(rng)

    def score(results):
        error = np.mean([(r[0][0, 0] - image) ** 2 for r, image in zip(results, test.numpy())])
        return float(-10 * np.log10(error))
    return Model(trained(net, train, digits), [(c[None],) for c in calibration.split(1)], [(t[None],) for t in test.split(1)],
                 "PSNR, dB", score, train=train)
