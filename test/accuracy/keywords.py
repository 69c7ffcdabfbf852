# SPDX-License-Identifier: Apache-2.0
"""Ten words that voices.py says, as spectra: clips of a second, 48 frames of 32 mel bands. Test voices are none of those that
a model was trained on."""
import filelock
import numpy as np
import torch
import torch.nn.functional as F

from model import Model, fit
from packages import BUILD
from voices import RATE, Voice, noise, say

WORDS = [[("", "e"), ("s", "u")], [("n", "o")], [("l", "i"), ("t", "a")], [("l", "a"), ("t", "i")], [("m", "a"), ("n", "u")],
         [("m", "e"), ("n", "o")], [("s", "i"), ("k", "a")], [("f", "i"), ("p", "a")], [("p", "o"), ("l", "e")], [("t", "o"), ("l", "e")]]
BANDS, FRAMES, WINDOW, HOP = 32, 48, 512, 320


def bands():
    """Triangles from 60 to 7600 Hz: [BANDS, WINDOW / 2 + 1]."""
    mel = lambda hertz: np.log(1 + hertz / 700)
    edges = 700 * (np.exp(np.linspace(mel(60), mel(7600), BANDS + 2)) - 1)
    bins = np.fft.rfftfreq(WINDOW, 1 / RATE)[None]
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.clip(np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)), 0, None)


def spectrum(samples):
    """[FRAMES, BANDS], about 0 with a deviation of about 1."""
    at = np.arange(FRAMES)[:, None] * HOP + np.arange(WINDOW)
    power = np.abs(np.fft.rfft(samples[at] * np.hanning(WINDOW))) ** 2
    return ((np.log10(power @ bands().T + 1e-4) + 1.5) / 1.5).astype(np.float32)


def clip(rng, word):
    said = say(rng, Voice.draw(rng), WORDS[word])[:RATE]
    samples = np.zeros(RATE, np.float32)
    start = int(rng.integers(0, RATE - len(said) + 1))
    samples[start:start + len(said)] = said * rng.uniform(0.3, 1)
    return spectrum(samples + noise(rng, RATE) * 0.15 * 10 ** (-rng.uniform(0, 20) / 20))


def clips(rng, count):
    words = np.arange(count) % len(WORDS)
    return torch.from_numpy(np.stack([clip(rng, word) for word in words])), torch.from_numpy(words)


def training():
    """2,000 clips, made once."""
    kept = BUILD / "trained/keywords.pt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{kept}.lock"):
        if not kept.exists():
            torch.save(clips(np.random.default_rng(1), 2000), kept)
    return torch.load(kept)


def train(module, steps, rate, tuning=False):
    spectra, words = training()
    batches = [torch.randint(len(words), (32,)) for _ in range(steps)]

    def loss(batch):
        moved = torch.roll(spectra[batch], int(torch.randint(-6, 7, ())), 1) + torch.randint(-3, 4, ()) / 10
        return F.cross_entropy(module(moved), words[batch], label_smoothing=0.05)
    fit(module, loss, batches, rate, tuning)


def model(module, rng, train):
    (calibration, _), (test, words) = clips(rng, 60), clips(rng, 200)

    def score(results):
        return 100 * float(np.mean([r[0].argmax() == word for r, word in zip(results, words.numpy())]))
    return Model(module, [(c,) for c in calibration.split(1)], [(c,) for c in test.split(1)], "right, %", score, train=train)
