# SPDX-License-Identifier: Apache-2.0
"""A keyword spotter that is a transformer of four layers, a token per frame, trained here on keywords.py's ten words."""
import keywords
import transformer
import voices
from model import trained


def net():
    return transformer.Encoder(keywords.FRAMES, keywords.BANDS, len(keywords.WORDS), 64, 4)


def train(module, tuning=False):
    keywords.train(module, 400, 2e-3, tuning)


def model(rng):
    return keywords.model(trained(net, train, keywords, voices, transformer), rng, train)
