# SPDX-License-Identifier: Apache-2.0
"""Seeded PyTorch modules of commands with views between them: rows into images and back, ranks 1 to 6, turned or not,
tables and sums on the way, values that also leave the model.

    python views.py SEED     prints the chains that a seed stands for
"""
import math
import random
import sys

import torch
from torch import nn

COMMANDS = ("linear", "conv1x1", "conv3x3", "depthwise", "add", "multiply", "sum", "maximum", "minimum", "table", "scale", "matmul", "gate", "none")


def factors(number, count, rng):
    """`number` as a product of `count` factors, in any order."""
    dims = [1] * count
    for prime in (2, 3, 5, 7):
        while number % prime == 0:
            dims[rng.randrange(count)] *= prime
            number //= prime
    dims[rng.randrange(count)] *= number
    return dims


class Chain(nn.Module):
    """A command, views, a table, more views, a command: drawn once, then fixed."""

    def __init__(self, rng):
        super().__init__()
        self.modules_made = nn.ModuleList()
        self.steps = []  # (text, function of the tensor)
        self.shape = [rng.choice((1, 1, 1, 2, 4)), *(rng.choice(((2, 6), (40,), (3, 8), (16,), (4, 5), (12,)))), rng.choice((8, 16, 24, 40, 48))]
        if rng.random() < 0.5:  # an image
            self.shape = [rng.choice((1, 1, 2)), rng.choice((8, 16, 40)), rng.choice((2, 4, 6)), rng.choice((4, 8, 10))]
        self.given = list(self.shape)
        self.leave = rng.random() < 0.25  # a value on the way is an output, too
        self.leaving = None
        self.command(rng)
        for _ in range(rng.randint(1, 2)):
            self.views(rng)
            if rng.random() < 0.4:
                self.command(rng, ("table", "scale"))
        self.leaving = rng.randrange(1, len(self.steps) + 1)
        self.views(rng)
        self.command(rng)
        if rng.random() < 0.3:
            self.views(rng)

    def step(self, text, function):
        self.steps.append((f"{text} -> {'x'.join(map(str, self.shape))}", function))

    def made(self, module):
        self.modules_made.append(module)
        return module

    def views(self, rng):
        for _ in range(rng.randint(1, 3)):
            if rng.random() < 0.5 and len(self.shape) > 1:
                order = list(range(len(self.shape)))
                rng.shuffle(order)
                if rng.random() < 0.6 and self.shape[0] == 1:  # the batch stays
                    order = [0, *[i for i in order if i]]
                self.shape = [self.shape[i] for i in order]
                self.step(f"permute {order}", lambda x, order=order: x.permute(order))
            else:
                dims = factors(math.prod(self.shape), rng.randint(2, 5), rng)
                if rng.random() < 0.7:
                    dims = [1, *dims]
                self.shape = dims
                self.step("reshape", lambda x, dims=dims: x.reshape(dims))

    def command(self, rng, choice=COMMANDS):
        kind = rng.choice(choice)
        shape = self.shape
        if kind in ("conv1x1", "conv3x3", "depthwise"):
            if len(shape) != 4:
                c = rng.choice([d for d in (1, 2, 4, 5, 8, 10, 12, 16, 20) if math.prod(shape) % d == 0])
                dims = [1, c, *factors(math.prod(shape) // c, 2, rng)]
                self.shape = shape = dims
                self.step("reshape", lambda x, dims=dims: x.reshape(dims))
            if kind == "depthwise":
                conv = self.made(nn.Conv2d(shape[1], shape[1], 3, padding=1, groups=shape[1]))
            else:
                conv = self.made(nn.Conv2d(shape[1], rng.choice((6, 12, 16, 40)), 1 if kind == "conv1x1" else 3, padding=int(kind == "conv3x3")))
            self.shape = [shape[0], conv.out_channels, *shape[2:]]
            self.step(kind, conv)
        elif kind == "linear":
            linear = self.made(nn.Linear(shape[-1], rng.choice((6, 12, 16, 40))))
            self.shape = [*shape[:-1], linear.out_features]
            self.step(kind, linear)
        elif kind in ("add", "multiply"):
            other = torch.randn([d if rng.random() < 0.7 else 1 for d in shape], generator=torch.Generator().manual_seed(rng.randrange(1000)))
            mode = rng.choice(("constant", "turned back", "self"))
            if mode == "self":  # the same tensor on two paths
                self.step(f"{kind} its table", lambda x: x + torch.sigmoid(x) if kind == "add" else x * torch.sigmoid(x))
            elif mode == "turned back" and len(shape) > 1:
                a, b = rng.sample(range(len(shape)), 2)
                dims = list(shape)
                self.step(f"{kind} itself, turned by {a} {b}", lambda x, a=a, b=b, dims=dims: (x + x.transpose(a, b).reshape(dims)) if kind == "add" else x * x.transpose(a, b).reshape(dims))
            else:
                self.step(f"{kind} a constant", (lambda x, other=other: x + other) if kind == "add" else (lambda x, other=other: x * other))
        elif kind in ("sum", "maximum", "minimum"):
            axis = rng.randrange(len(shape))
            keep = rng.random() < 0.5
            self.shape = [d if i != axis else 1 for i, d in enumerate(shape) if i != axis or keep]
            self.step(f"{kind} {axis}", lambda x, axis=axis, keep=keep: {"sum": x.sum, "maximum": x.amax, "minimum": x.amin}[kind](axis, keepdim=keep))
        elif kind == "table":
            name, function = rng.choice((("sigmoid", torch.sigmoid), ("tanh", torch.tanh), ("relu", torch.relu), ("hardswish", nn.functional.hardswish)))
            self.step(name, function)
        elif kind == "scale":
            self.step("times 1.5", lambda x: x * 1.5)
        elif kind == "gate" and any(d > 1 for d in shape):  # what a dim comes to, activated, next to a part of it
            axis, keep = rng.choice([i for i, d in enumerate(shape) if d > 1]), rng.random() < 0.5
            at, reduce = rng.randrange(shape[axis]), rng.choice(("sum", "mean", "amax"))
            (name, function), join = rng.choice((("sigmoid", torch.sigmoid), ("relu", torch.relu))), rng.choice((torch.add, torch.mul))
            self.shape = [d if i != axis else 1 for i, d in enumerate(shape) if i != axis or keep]
            self.step(f"{name} of {reduce} {axis}, {join.__name__} its part {at}",
                      lambda x: join(function(getattr(x, reduce)(axis, keepdim=keep)), x.narrow(axis, at, 1) if keep else x.select(axis, at)))
        elif kind == "matmul" and len(shape) > 1:
            self.step("matmul with itself, turned", lambda x: x @ x.transpose(-1, -2))
            self.shape = [*shape[:-1], shape[-2]]

    def forward(self, x):
        for number, (_, function) in enumerate(self.steps, 1):
            x = function(x)
            if self.leave and number == self.leaving:
                other = x
        return (x, other) if self.leave else x


class Chains(nn.Module):
    def __init__(self, seed, count):
        super().__init__()
        rng = random.Random(seed)
        torch.manual_seed(seed)
        self.chains = nn.ModuleList()
        while len(self.chains) < count:
            chain = Chain(rng)
            if len(chain.shape) and math.prod(chain.shape) < 20000 and all(d < 4000 for d in chain.shape):
                self.chains.append(chain)

    def inputs(self):
        generator = torch.Generator().manual_seed(len(self.chains))
        return tuple(torch.randn(chain.given, generator=generator) for chain in self.chains)

    def forward(self, *xs):
        results = []
        for chain, x in zip(self.chains, xs):
            y = chain(x)
            results += y if isinstance(y, tuple) else [y]
        return tuple(results)

    def text(self):
        return "\n".join(f"{'x'.join(map(str, c.given))}: {'; '.join(t for t, _ in c.steps)}{f'; also leaves after {c.leaving}' if c.leave else ''}"
                         for c in self.chains)


if __name__ == "__main__":
    print(Chains(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1).text())
