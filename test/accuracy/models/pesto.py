# SPDX-License-Identifier: Apache-2.0
"""PESTO: the pitch from a constant-Q spectrum in dB of 219 bins, which PyTorch makes in floats before the model. Weights: PyPI's
pesto-pitch (mir-1k_g7). The task: the pitch of synthetic tones within half a semitone."""
import numpy as np
import torch

from model import Model
from packages import module, package
from tones import pitches, tone

RATE, SAMPLES = 16000, 16000


def parts():
    """(the model, its preprocessing: samples to the spectrum of the middle frame, its shift in semitones)."""
    kept = torch.load(package("pesto-pitch") / "pesto/weights/mir-1k_g7.ckpt", map_location="cpu", weights_only=False)
    encoder = module("pesto-pitch", "pesto.model").Resnet1d(**kept["hparams"]["encoder"])
    weights = {name.removeprefix("encoder."): value for name, value in kept["state_dict"].items() if name.startswith("encoder.")}
    encoder.load_state_dict(weights)
    spectrum = module("pesto-pitch", "pesto.data").Preprocessor(hop_size=10.0, sampling_rate=RATE, **kept["hcqt_params"])
    lowest, highest = kept["hparams"]["pitch_shift"]["max_steps"], kept["hparams"]["pitch_shift"]["min_steps"]

    def preprocess(samples):
        with torch.no_grad():
            frames = spectrum(torch.from_numpy(samples)[None])[0]
            return frames[len(frames) // 2][None, :, lowest:highest].contiguous()
    return encoder, preprocess, float(kept["state_dict"]["shift"])


def semitones(bins, shift):
    """The mean of the five bins around the largest, weighted; a bin is a third of a semitone."""
    bins = np.roll(bins, -round(3 * shift))
    near = np.clip(bins.argmax() + np.arange(-2, 3), 0, len(bins) - 1)
    return (bins[near] * near).sum() / bins[near].sum() / 3


def model(rng):
    encoder, preprocess, shift = parts()
    calls = lambda hertz: [(preprocess(tone(rng, pitch, SAMPLES, RATE)),) for pitch in hertz]
    hertz = pitches(rng, 240, 70, 800)
    true = 69 + 12 * np.log2(hertz / 440)

    def score(results):
        return 100 * float(np.mean([abs(semitones(r[0][0], shift) - t) < 0.5 for r, t in zip(results, true)]))
    return Model(encoder, calls(pitches(rng, 64, 70, 800)), calls(hertz), "within half a semitone, %", score)
