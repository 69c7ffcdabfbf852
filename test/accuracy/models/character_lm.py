# SPDX-License-Identifier: Apache-2.0
"""A language model of characters: six layers with RMSNorm, rotary positions and SwiGLU. Trained here on the texts that Python
shows for help("topics"); the test is on a part that it was not trained on. The task: bits per character."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from model import Model, fit, trained

CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;()[]{}'\"`=_-+*/<>#@!%&|~^$?\\"
LENGTH, WIDTH, HEADS = 64, 96, 4


def text():
    """The characters' indices, and where the test begins."""
    from pydoc_data.topics import topics
    whole = "\n".join(topics[name] for name in sorted(topics)).lower()
    codes = torch.tensor([CHARACTERS.index(c) for c in whole if c in CHARACTERS])
    return codes, len(codes) * 9 // 10


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Layer(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, hidden, bias=False), nn.Linear(WIDTH, hidden, bias=False)
        self.down = nn.Linear(hidden, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS), WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(6))
        self.norm, self.head = nn.RMSNorm(WIDTH, eps=1e-5), nn.Linear(WIDTH, len(CHARACTERS), bias=False)
        half = WIDTH // HEADS // 2
        angles = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, codes):
        x = self.embed(codes)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


def train(module, tuning=False):
    codes, end = text()
    windows = [torch.randint(end - LENGTH - 1, (16, 1)) + torch.arange(LENGTH + 1) for _ in range(500)]

    def loss(at):
        return F.cross_entropy(module(codes[at[:, :-1]]).flatten(0, 1), codes[at[:, 1:]].flatten())
    fit(module, loss, windows, 4e-3, tuning)


def model(rng):
    codes, end = text()
    starts = end + rng.choice((len(codes) - end) // (LENGTH + 1), 80, replace=False) * (LENGTH + 1)
    windows = [codes[s:s + LENGTH + 1][None] for s in starts]
    train_windows = [codes[s:s + LENGTH][None] for s in rng.integers(0, end - LENGTH, 32)]

    def score(results):
        bits = [F.cross_entropy(torch.from_numpy(r[0][0]), w[0, 1:]).item() for r, w in zip(results, windows)]
        return float(np.mean(bits) / np.log(2))
    return Model(trained(Decoder, train), [(w,) for w in train_windows], [(w[:, :-1],) for w in windows], "bits per character",
                 score, lower_is_better=True, train=train)
