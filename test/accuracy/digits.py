# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's handwritten digits, 8 x 8: two thirds for training, the rest for calibration and tests."""
import numpy as np
import torch


def split():
    """(images [.., 8, 8] of 0..1, labels) for training, and the same of the rest."""
    from sklearn.datasets import load_digits
    images, labels = load_digits(return_X_y=True)
    images = torch.from_numpy(images.reshape(-1, 8, 8).astype(np.float32) / 16)
    labels = torch.from_numpy(labels)
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(labels)))
    train, rest = order[:1200], order[1200:]
    return (images[train], labels[train]), (images[rest], labels[rest])


def drawn(rng, calibration=60):
    """Images for calibration, and others with their labels for the test."""
    images, labels = split()[1]
    order = torch.from_numpy(rng.permutation(len(labels)))
    return images[order[:calibration]], images[order[calibration:]], labels[order[calibration:]]
