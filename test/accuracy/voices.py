# SPDX-License-Identifier: Apache-2.0
"""Speech made with NumPy, 16 kHz: harmonics and noise under the resonances of a mouth that moves from sound to sound. Voices
differ in pitch, length of the vocal tract, speed and breath."""
import dataclasses

import numpy as np

RATE, STEP = 16000, 80  # samples in a second, and between two sets of resonances
# The first three resonances of vowels, in Hz.
VOWELS = {"a": (750, 1250, 2500), "e": (520, 1850, 2500), "i": (300, 2250, 3000), "o": (500, 900, 2450), "u": (330, 850, 2300)}
# The part of noise, where it is strongest in Hz, the loudness of the hum, milliseconds of silence and of sound.
CONSONANTS = {"s": (1.0, 5500, 0.0, 0, 90), "f": (0.5, 3500, 0.0, 0, 70), "k": (0.9, 2200, 0.0, 50, 25), "t": (0.9, 4200, 0.0, 50, 20),
              "p": (0.6, 1000, 0.0, 55, 20), "n": (0.0, 1500, 0.35, 0, 70), "m": (0.0, 1000, 0.35, 0, 70), "l": (0.0, 1300, 0.5, 0, 60),
              "": (0.0, 1500, 0.0, 0, 10)}


@dataclasses.dataclass
class Voice:
    pitch: float
    tract: float  # scale of all resonances
    speed: float
    breath: float
    melody: float

    @staticmethod
    def draw(rng):
        return Voice(float(np.exp(rng.uniform(np.log(90), np.log(260)))), rng.uniform(0.88, 1.15), rng.uniform(0.8, 1.25),
                     rng.uniform(0.02, 0.1), rng.uniform(0.05, 0.2))


def syllables(rng, count):
    return [(str(rng.choice(list(CONSONANTS))), str(rng.choice(list(VOWELS)))) for _ in range(count)]


def tracks(rng, voice, word):
    """Per STEP: resonances, loudness of the voice, loudness and centre of the noise."""
    rows = []
    last = np.array(VOWELS[word[0][1]], float)

    def part(milliseconds, end, hum, noise, centre):
        nonlocal last
        steps = max(1, int(milliseconds * rng.uniform(0.85, 1.15) / voice.speed * RATE / 1000 / STEP))
        for i in range(steps):
            rows.append((*(last + (end - last) * min(1, 2 * (i + 1) / steps)), hum, noise, centre))
        last = np.asarray(end, float)
    for consonant, vowel in word:
        noise, centre, hum, silence, sound = CONSONANTS[consonant]
        formants = np.array(VOWELS[vowel]) * rng.normal(1, 0.03, 3)
        if silence:
            part(silence, last, 0, 0, centre)
        part(sound, 0.5 * (last + formants) if hum else last, hum, noise, centre)
        part(rng.uniform(110, 200), formants, 1, voice.breath, 2500)
    part(30, last, 0, 0, 2500)
    rows = np.array(rows)
    for column in (3, 4):  # a mouth does not jump
        rows[:, column] = np.convolve(rows[:, column], np.hanning(7)[1:-1] / np.hanning(7).sum(), "same")
    rows[:, :3] *= voice.tract
    return rows


def resonances(frequencies, formants):
    """The gain at `frequencies` under `formants`: one row per step."""
    gain = np.ones((len(formants), frequencies.shape[-1]))
    for i, width in enumerate((80, 100, 150, 200, 250, 300, 350)):
        # Those from the fourth on do not move.
        at = formants[:, i:i + 1] if i < 3 else np.full((1, 1), 1000.0 * i + 600)
        ratio = frequencies / at
        gain /= np.sqrt((1 - ratio ** 2) ** 2 + (ratio * width / at) ** 2)
    return gain


def say(rng, voice, word):
    """The samples of a word, a list of (consonant, vowel), with a largest value of 1."""
    rows = tracks(rng, voice, word)
    steps = len(rows)
    samples = steps * STEP
    x, at = np.arange(samples), np.arange(steps) * STEP
    wave = np.interp(np.linspace(0, 1, samples), np.linspace(0, 1, 6), rng.normal(0, voice.melody, 6) + np.linspace(0.1, -0.1, 6))
    pitch = voice.pitch * np.exp(wave) * (1 + 0.01 * np.sin(2 * np.pi * 5 * x / RATE))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    count = int(6500 / voice.pitch)
    harmonics = pitch[at][:, None] * np.arange(1, count + 1)
    gains = resonances(harmonics, rows[:, :3]) / np.arange(1, count + 1) ** 1.1 * rows[:, 3:4]
    out = sum(np.interp(x, at, gains[:, k]) * np.sin((k + 1) * phase) for k in range(count))
    out /= np.abs(out).max() + 1e-9
    # Noise: frames of 2 STEPs, shaped, and overlapped.
    bins = np.fft.rfftfreq(2 * STEP, 1 / RATE)
    shape = np.exp(-((bins - rows[:, 5:6]) / (0.35 * rows[:, 5:6] + 300)) ** 2) * rows[:, 4:5]
    frames = np.fft.irfft(np.fft.rfft(rng.normal(0, 1, (steps, 2 * STEP)), axis=1) * shape) * np.hanning(2 * STEP)
    hiss = np.zeros(samples + STEP)
    for i in range(steps):
        hiss[i * STEP:(i + 2) * STEP] += 0.5 * frames[i]
    out = out + hiss[:samples]
    return (out / np.abs(out).max()).astype(np.float32)


def noise(rng, samples):
    """White to brown, with hum now and then, of RMS 1."""
    spectrum = np.fft.rfft(rng.normal(0, 1, samples))
    bins = np.arange(len(spectrum))
    out = np.fft.irfft(spectrum / (1 + bins * 200 / samples) ** rng.uniform(0, 1), samples)
    if rng.uniform() < 0.3:
        out += out.std() * np.sin(2 * np.pi * rng.choice([50, 60, 100, 1000]) * np.arange(samples) / RATE)
    return (out / out.std()).astype(np.float32)


def stream(rng, seconds):
    """Words and pauses in noise: the samples, and for each whether somebody speaks."""
    out, speaks = [], []
    voice = Voice.draw(rng)
    while sum(map(len, out)) < seconds * RATE:
        pause = np.zeros(int(rng.uniform(0.3, 1.2) * RATE), np.float32)
        phrase = say(rng, voice, syllables(rng, int(rng.integers(3, 9))))
        out += [pause, phrase * rng.uniform(0.5, 1)]
        speaks += [pause > 0, np.ones(len(phrase), bool)]
    samples = int(seconds * RATE)
    out = np.concatenate(out)[:samples]
    level = 0.1 * 10 ** (-rng.uniform(5, 30) / 20)
    out = (out + level * noise(rng, samples)) * 10 ** (rng.uniform(-10, 0) / 20)
    return out.astype(np.float32), np.concatenate(speaks)[:samples]
