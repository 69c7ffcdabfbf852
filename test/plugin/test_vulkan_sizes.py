# SPDX-License-Identifier: Apache-2.0
"""Programs for Vulkan whose sizes vary within bounds, in ExecuTorch's runtime and in ours, against eager PyTorch."""
import subprocess

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")


class Tokens(nn.Module):
    """Learned places, causal attention, a mean over the sequence, its last place."""

    def __init__(self, d=16, heads=2):
        super().__init__()
        self.words, self.places = nn.Embedding(20, d), nn.Parameter(torch.randn(1, 24, d))
        self.norm, self.qkv, self.out = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.heads = heads

    def forward(self, words):
        b, s = words.shape
        x = self.words(words) + self.places[:, :s]
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + nn.functional.gelu(self.out(y.transpose(1, 2).reshape(b, s, -1)))
        return x.mean(1), x[:, -1].softmax(-1), x.argmax(1)


class Images(nn.Module):
    """A convolutional net of any batch."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 8, 3, 1, 1, groups=8),
                                 nn.Conv2d(8, 12, 1), nn.Hardswish(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
                                 nn.Flatten(), nn.Linear(12, 5))

    def forward(self, x):
        return self.net(x)


class Larger(nn.Module):
    """Images of any size, three times as large."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.Conv2d(6, 9, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, x):
        return self.net(x)


class Two(nn.Module):
    """Sequences of two lengths, one behind the other; the second one's batch is 2n + 1."""

    def forward(self, x, y, z):
        return torch.cat([x, y], 1).softmax(1), x.amax(1) + z[1:x.shape[0] + 1].sum(1), nn.functional.pad(y, (0, 0, 1, 2))


batch, length, other = Dim("batch", min=1, max=4), Dim("length", min=2, max=24), Dim("other", min=1, max=9)
high, wide = Dim("high", min=4, max=20), Dim("wide", min=4, max=30)
random = np.random.default_rng(1)


def reals(*shape):
    return random.standard_normal(shape, np.float32)


# Module, dynamic shapes, a call at sizes, some sizes.
PROGRAMS = {
    "tokens": (Tokens, ({0: batch, 1: length},), lambda b, s: [random.integers(0, 20, (b, s))],
               [(4, 24), (1, 2), (3, 7), (2, 24), (4, 5)]),
    "images": (Images, ({0: batch},), lambda b: [reals(b, 3, 17, 17)], [(4,), (1,), (3,)]),
    "larger": (Larger, ({0: batch, 2: high, 3: wide},), lambda b, h, w: [reals(b, 1, h, w)],
               [(4, 20, 30), (1, 4, 4), (2, 13, 6)]),
    "two": (Two, ({0: batch, 1: length}, {0: batch, 1: other}, {0: 2 * batch + 1, 1: length}),
            lambda b, s, t: [reals(b, s, 6), reals(b, t, 6), reals(2 * b + 1, s, 6)], [(4, 24, 9), (1, 2, 1), (3, 5, 8)]),
}


@pytest.fixture(scope="module")
def made(tool, tmp_path_factory):
    """The module and its program, for one tier of devices."""
    folder, known = tmp_path_factory.mktemp("sizes"), {}

    def make(name, tier):
        module, shapes, call, sizes = PROGRAMS[name]
        if name not in known:
            torch.manual_seed(2)
            known[name] = module().eval()
            example = tuple(torch.from_numpy(x) for x in call(*sizes[-1]))
            torch.export.save(torch.export.export(known[name], example, dynamic_shapes=shapes), folder / f"{name}.pt2")
        program = folder / f"{name}_{tier}.pte"
        if not program.exists():
            tool("compile", folder / f"{name}.pt2", "--target", "vulkan", "--vulkan-tiers", tier, "-o", program)
        return known[name], program
    return make


@pytest.fixture
def executorch(plugin):
    """A program in ExecuTorch's runtime, for calls of several sizes."""
    def load(program):
        from executorch.runtime import Runtime
        loaded = Runtime.get().load_program(program)
        method = loaded.load_method("forward")
        return lambda inputs, kept=loaded: [o.numpy().copy() for o in method.execute([torch.from_numpy(x) for x in inputs])]
    return load


def compare(module, inputs, found):
    wanted = module(*[torch.from_numpy(x) for x in inputs])
    for f, w in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert f.dtype == w.detach().numpy().dtype
        np.testing.assert_allclose(f, w.detach().numpy(), rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("tier", ["cpu", "base"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_size(name, tier, made, ours, executorch):
    module, program = made(name, tier)
    _, _, call, sizes = PROGRAMS[name]
    method = executorch(program)
    for size in [*sizes, sizes[0]]:
        inputs = call(*size)
        compare(module, inputs, method(inputs))
    inputs = call(*sizes[1])
    compare(module, inputs, ours(program, inputs))


def test_sizes_beyond_a_bound(made, executorch, tosaic, tmp_path):
    _, program = made("tokens", "cpu")
    np.save(tmp_path / "x.npy", np.zeros((5, 3), np.int64))
    done = subprocess.run([tosaic, "run", program, "--input", tmp_path / "x.npy"], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'input 0 is 5x3xi64, the program takes "words.0"x"words.1"xi64' in done.stderr
    assert 'note: "words.0" is 1..4' in done.stderr
    with pytest.raises(RuntimeError):
        executorch(program)([np.zeros((5, 3), np.int64)])


class Resized(nn.Module):
    """To one size whatever it was: by a ratio that varies."""

    def __init__(self):
        super().__init__()
        self.resize = nn.Upsample(size=(8, 8), mode="bilinear")

    def forward(self, x):
        return self.resize(x)


@pytest.mark.parametrize("module, example, shapes, said", [
    (Resized, (1, 1, 6, 8), {2: Dim("h", min=4, max=20)},
     ["error[lower.sizes]: tosa.resize:", "in module resize (Upsample)", "--sizes NAME=SIZE"]),
    (nn.ReLU, (4, 3), {0: Dim("n", min=2)}, ["error[model.size]: size 's", "has no upper bound", "max="])])
def test_what_does_not_vary(module, example, shapes, said, tosaic, tmp_path):
    made = torch.export.export(module().eval(), (torch.zeros(example),), dynamic_shapes=(shapes,), strict=False)
    torch.export.save(made, tmp_path / "m.pt2")
    done = subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "vulkan", "-o", tmp_path / "m.pte"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and all(text in done.stderr for text in said), done.stderr
    assert not (tmp_path / "m.pte").exists()
