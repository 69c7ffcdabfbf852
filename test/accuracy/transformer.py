# SPDX-License-Identifier: Apache-2.0
"""An encoder: tokens, a class token in front, learned positions, pre-norm layers."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    """[batch, tokens, features] to [batch, classes]."""

    def __init__(self, tokens, features, classes, width, layers, heads=4):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.5 * torch.randn(1, tokens + 1, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens):
        x = torch.cat([self.first.expand(tokens.shape[0], -1, -1), self.embed(tokens)], 1) + self.positions
        return self.head(self.norm(self.layers(x)[:, 0]))
