# SPDX-License-Identifier: Apache-2.0
"""Tones of instruments that nobody has built: harmonics, vibrato, a little noise."""
import numpy as np


def tone(rng, pitch, samples, rate):
    """`pitch` in Hz is that of the middle. The RMS is 0.02 to 0.3."""
    seconds = (np.arange(samples) - samples / 2) / rate
    depth = rng.uniform(0, 0.003)
    phase = 2 * np.pi * pitch * (seconds + depth / 35 * np.sin(35 * seconds))
    count = max(1, min(int(rng.integers(3, 25)), int(0.45 * rate / pitch)))
    loud = np.arange(1, count + 1) ** -rng.uniform(0.5, 2) * rng.uniform(0.3, 1, count)
    wave = sum(a * np.sin(k * phase + rng.uniform(0, 2 * np.pi)) for k, a in enumerate(loud, 1))
    wave = wave / wave.std() + rng.normal(0, 10 ** -rng.uniform(0.6, 2), samples)
    return (wave / wave.std() * 10 ** rng.uniform(-1.7, -0.5)).astype(np.float32)


def pitches(rng, count, least, most):
    return np.exp(rng.uniform(np.log(least), np.log(most), count))
