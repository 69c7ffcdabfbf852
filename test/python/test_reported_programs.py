# SPDX-License-Identifier: Apache-2.0
"""Programs that keep buffers, branch, loop and vary in size, small, as users reported them to ExecuTorch, PyTorch and others
that compile exported programs (the numbers are those of their issues and pull requests). Run after run as eager PyTorch."""
import copy

import pytest
import tosaic
import torch
import torch.nn.functional as F
from functions import Of
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_leaves

pytestmark = pytest.mark.filterwarnings("ignore")


class Cache(nn.Module):
    """iree-turbine 85: rows put at positions, the caches returned."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 4, 16, 8))
        self.register_buffer("v", torch.zeros(2, 4, 16, 8))

    def forward(self, at, k, v):
        put = torch.ops.aten.index_put_
        return put(self.k, [None, None, at], k), put(self.v, [None, None, at], v)


class Past(nn.Module):
    """executorch 5068: a stream's past."""

    def __init__(self):
        super().__init__()
        self.register_buffer("past", torch.zeros(1, 8, 6))
        self.conv = nn.Conv1d(8, 8, 3)

    def forward(self, x):
        y = torch.cat([self.past, x], dim=-1)
        self.past.copy_(y[..., -6:])
        return self.conv(y)


class Embedded(nn.Module):
    """executorch 22410: a look-up that kept its largest size."""

    def __init__(self):
        super().__init__()
        self.words, self.linear = nn.Embedding(20, 8), nn.Linear(8, 8)

    def forward(self, words):
        return self.linear(self.words(words)).relu().mean(1)


class Normed(nn.Module):
    """executorch 20312: rows beyond the size in a group's statistics."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 1), nn.GroupNorm(2, 8)

    def forward(self, x):
        return self.norm(self.conv(x))


class Rotary(nn.Module):
    """executorch 21847: rows of a table of angles, by position."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(32.0), 1 / 10000 ** (torch.arange(4.0) / 4))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x, at):
        cos, sin = self.cos[at].unsqueeze(1), self.sin[at].unsqueeze(1)
        a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class ShortConvolution(nn.Module):
    """executorch 21847: a gated convolution whose state is pushed on by one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 8, 3))
        self.weight, self.first, self.last = nn.Parameter(torch.randn(8, 3)), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        b, c, v = self.first(x).chunk(3, -1)
        state = torch.cat([self.state[..., 1:], (b * v).unsqueeze(-1)], -1)
        self.state.copy_(state)
        return self.last(c * (state * self.weight).sum(-1))


class Prefill(nn.Module):
    """executorch 7927: prompts of any length, a cache of one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 16, 8))
        self.register_buffer("v", torch.zeros(1, 2, 16, 8))
        self.register_buffer("mask", torch.tril(torch.ones(16, 16, dtype=torch.bool)), persistent=False)
        self.qkv = nn.Linear(16, 48)

    def forward(self, x, at):
        q, k, v = (t.view(1, -1, 2, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        self.k.index_copy_(2, at, k)
        self.v.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.k, self.v, attn_mask=self.mask[at][None, None])
        return y.transpose(1, 2).flatten(2)


class Ring(nn.Module):
    """A ring of the last rows, and how many there are."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(5, 3))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        self.ring.index_copy_(0, self.count % 5, x)
        self.count.add_(1)
        filled = torch.arange(5) < self.count
        return (self.ring * filled.unsqueeze(1)).sum(0) / filled.sum()


class Reset(nn.Module):
    """pytorch 186462: a branch decides what a state becomes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 4))
        self.gate = nn.Linear(4, 4)

    def forward(self, x, reset):
        h = torch.cond(reset.any(), lambda h, x: torch.zeros_like(h) + x, lambda h, x: torch.tanh(self.gate(h)) + x,
                       (self.h.clone(), x))
        self.h.copy_(h)
        return h * 2


def sliding(q, k, at):
    """Attention to the last four places."""
    i, j = at[:, None], torch.arange(12)[None]
    shares = (q @ k.transpose(-1, -2)).masked_fill(~((j <= i) & (j > i - 4)), float("-inf")).softmax(-1)
    return shares @ k


n, m = Dim("n", min=2, max=16), Dim("m", min=2, max=16)
RUNS = 4
PROGRAMS = {  # name -> the module, the inputs of run i, which of their sizes vary
    "iree-turbine 85": (Cache, lambda i: (torch.arange(i * 3, i * 3 + 3), torch.randn(2, 4, 3, 8), torch.randn(2, 4, 3, 8)), None),
    "executorch 5068": (Past, lambda i: (torch.randn(1, 8, 4),), None),
    "executorch 3636": (lambda: Of(lambda a, b: a + b), lambda i: (torch.randn(4 + 3 * i), torch.randn(4 + 3 * i)), ({0: n}, {0: n})),
    "executorch 22410": (Embedded, lambda i: (torch.randint(0, 20, (2, 5 + 3 * i)),), ({1: n},)),
    "executorch 21232": (lambda: Of(lambda a, b: torch.cat([a * 2, b.relu(), a], 1)),
                         lambda i: (torch.randn(3, 4 + i), torch.randn(3, 9 - i)), ({1: n}, {1: m})),
    "executorch 20312": (Normed, lambda i: (torch.randn(1, 4, 5 + i, 6),), ({2: n},)),
    "executorch 21847, rotary": (Rotary, lambda i: (torch.randn(1, 3 + i, 2, 8), torch.arange(i, 3 + 2 * i)), ({1: n}, {0: n})),
    "executorch 21847, state": (ShortConvolution, lambda i: (torch.randn(1, 8),), None),
    "executorch 7927": (Prefill, lambda i: (torch.randn(1, 4, 16), torch.arange(4 * i, 4 * i + 4)), None),
    "executorch 7927, any length": (Prefill, lambda i: (torch.randn(1, 3 + i, 16), torch.arange(i, 3 + 2 * i)), ({1: n}, {0: n})),
    "pytorch 135632": (lambda: Of(lambda x, y: (x * 2, y + 1, torch.sym_max(x.shape[0], y.shape[0]))),
                       lambda i: (torch.randn(3 + i, 2), torch.randn(5, 2)), ({0: n}, {0: m})),
    "a ring": (Ring, lambda i: (torch.randn(1, 3),), None),
    "pytorch 186462": (Reset, lambda i: (torch.randn(1, 4), torch.tensor([i == 1])), None),
    "a window": (lambda: Of(sliding), lambda i: (torch.randn(2, 12, 4), torch.randn(2, 12, 4), torch.arange(12)), None),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request):
    """The exported program, the inputs of the runs, what eager PyTorch gives, which sizes vary."""
    make, inputs, varying = PROGRAMS[request.param]
    torch.manual_seed(5)
    module, steps = make().eval(), [inputs(i) for i in range(RUNS)]
    exported = torch.export.export(copy.deepcopy(module), copy.deepcopy(steps[0]), dynamic_shapes=in_the_call(module, varying),
                                   strict=False)
    with torch.no_grad():
        wanted = [copy.deepcopy(tree_leaves(module(*copy.deepcopy(step)))) for step in steps]
    return exported, steps, wanted, varying


def in_the_call(module, varying):
    return (varying,) if varying and isinstance(module, Of) else varying


def first_sizes(exported, step, varying):
    """The choice of the first run's sizes."""
    names = [s.arg.name for s in exported.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    return [f"{name}.{d}={x.shape[d]}" for name, x, dims in zip(names, step, varying or ()) for d in dims]


def decibels(wanted, got):
    assert wanted.shape == got.shape
    noise = ((wanted.double() - got.double()) ** 2).sum()
    return float(10 * torch.log10((wanted.double() ** 2).sum() / noise)) if noise else 200.0


def check(session, steps, wanted, least):
    for step, expected in zip(steps, wanted):
        for a, b in zip(expected, tree_leaves(session.run(*copy.deepcopy(step))), strict=True):
            if isinstance(a, torch.Tensor):
                assert decibels(a, b) > least
            else:
                assert type(a) is type(b) and a == b


@pytest.mark.parametrize("target", [None, "tosa-fp", "vgf", "vulkan"])
def test_in_floats(program, target):
    exported, steps, wanted, varying = program
    if target is None:
        return check(tosaic.Program.of(exported).session(), steps, wanted, 110)
    if target == "vulkan":
        return check(tosaic.compile(exported, target=target).session(), steps, wanted, 110)
    runs = 1 if varying else RUNS
    sizes = first_sizes(exported, steps[0], varying)
    check(tosaic.compile(exported, target=target, **({"sizes": sizes} if sizes else {})).session(), steps[:runs], wanted, 110)


def test_in_int8_on_an_npu(program, request):
    """What only moves integers to where data say has no command there, and is told."""
    exported, steps, wanted, varying = program
    runs, sizes = 1 if varying else RUNS, first_sizes(exported, steps[0], varying)
    how = {"calibration": copy.deepcopy(steps[:runs]), **({"sizes": sizes} if sizes else {})}
    if "iree-turbine" in request.node.name:
        with pytest.raises(tosaic.Error, match="nothing-delegated|no node of the program runs"):
            tosaic.compile(exported, target="ethos-u55-128", **how)
        return
    check(tosaic.compile(exported, target="ethos-u55-128", **how).session(), steps[:runs], wanted, 25)
