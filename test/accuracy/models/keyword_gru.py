# SPDX-License-Identifier: Apache-2.0
"""A keyword spotter of two GRU layers, trained here on keywords.py's ten words."""
from torch import nn

import keywords
import voices
from model import trained


class Gru(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.gru = nn.GRU(keywords.BANDS, width, 2, batch_first=True)
        self.head = nn.Linear(width, len(keywords.WORDS))

    def forward(self, x):
        return self.head(self.gru(x)[0].mean(1))


def train(module, tuning=False):
    keywords.train(module, 400, 5e-3, tuning)


def model(rng):
    return keywords.model(trained(Gru, train, keywords, voices), rng, train)
