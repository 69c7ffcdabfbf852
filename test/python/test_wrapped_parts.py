# SPDX-License-Identifier: Apache-2.0
"""Parts of a module that torch.export keeps as calls of a body: no_grad, autocast, checkpoints; what they write to."""

import copy

import pytest
import torch
import tosaic
from executors import held
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


class WithoutGradients(nn.Module):
    """A part, one in another one, and one whose size and result are numbers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = x.sin() * 2
            with torch.enable_grad():
                z = self.linear(y)
        return self.linear(x) + y + z


class Decorated(nn.Module):
    """As transformers' rotary embeddings are written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.arange(1, 5).float())

    @torch.no_grad()
    def angles(self, x):
        with torch.autocast("cpu", enabled=False):
            return (x.float() * self.steps).cos(), (x.float() * self.steps).sin()

    def forward(self, x):
        c, s = self.angles(x)
        return x * c + x.flip(-1) * s


class WritesInside(nn.Module):
    """A buffer and an input, written where no gradients are kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.mean.mul_(0.5).add_(x.mean(0))
        return x - self.mean


class Unregistered(nn.Module):
    """A cache that is a plain attribute, as transformers' StaticCache has them."""

    def __init__(self):
        super().__init__()
        self.cache, self.runs = torch.zeros(4, 4), torch.zeros(1, dtype=torch.int64)

    def forward(self, x):
        self.cache.index_copy_(0, self.runs % 4, x[:1])
        self.runs.add_(1)
        return self.cache.sum(0) + x, self.runs.clone()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("make", [WithoutGradients, Decorated, WritesInside, Unregistered])
@pytest.mark.parametrize("target", ["none", "tosa-fp", "vgf", "vulkan"])
def test_run_after_run_as_in_eager(make, strict, target):
    torch.manual_seed(1)
    module = make()
    exported = torch.export.export(copy.deepcopy(module), (torch.randn(2, 4),), strict=strict)
    made = tosaic.Program.of(exported) if target == "none" else tosaic.compile(exported, target=target)
    session = held(target, made.session)
    module = exported.module()  # exporting may have run what no buffer holds
    for _ in range(6):
        x = torch.randn(2, 4)
        torch.testing.assert_close(session.run(x), module(x), rtol=1e-5, atol=1e-5)


class HalfInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y.float() * 2


@pytest.mark.parametrize("strict", [False, True])  # of strict programs torch 2.13 cannot write the casts either
def test_autocast_is_for_pytorch_to_write_out(strict):
    """The body says no casts: computing it as it stands would give other numbers."""
    module, x = HalfInside().eval(), torch.randn(2, 4)
    exported = torch.export.export(module, (x,), strict=strict)
    with pytest.raises(tosaic.Error, match="run_decompositions"):
        tosaic.compile(exported, target="tosa-fp")
    if not strict:
        session = tosaic.Program.of(exported.run_decompositions({})).session()
        torch.testing.assert_close(session.run(x), module(x))


def test_a_parameter_that_is_written_is_refused():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            with torch.no_grad():
                self.scale.mul_(0.5)
            return x * self.scale

    try:
        exported = torch.export.export(Scaled(), (torch.randn(2, 4),))
    except Exception:
        pytest.skip("this torch exports no such program")
    with pytest.raises(tosaic.Error, match="scale"):
        tosaic.compile(exported, target="tosa-fp")
