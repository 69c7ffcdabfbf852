# SPDX-License-Identifier: Apache-2.0
"""Caches in int8 (`kv="int8"`): as near to eager PyTorch as 8 bits for each row are, in a quarter of the memory."""
import pathlib
import sys

import pytest
import torch
from torch import nn

import tosaic

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "llm"))
from decoder import Shape, random_decoder  # noqa: E402


class Cache(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write = write
        torch.manual_seed(1)
        self.register_buffer("keys", torch.randn(1, 2, 16, 32))
        self.key = nn.Linear(8, 64)

    def forward(self, x, position):
        key = self.key(x).view(1, 1, 2, 32).transpose(1, 2)
        if self.write == "index_copy":
            self.keys.index_copy_(2, position, key)
        elif self.write == "index_put":
            self.keys[:, :, position] = key
        else:
            self.keys[:, :, 3:4] = key
        return self.keys * 2


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
@pytest.mark.parametrize("write", ["index_copy", "index_put", "slice"])
def test_rows_are_written_in_8_bits(write, target):
    model = Cache(write).eval()
    calls = [(torch.randn(1, 8), torch.tensor([p])) for p in (3, 0, 15)]
    artifact = tosaic.compile(model, calls[0], target=target, kv="int8")
    assert artifact.summary.delegates == 1
    session = artifact.session()
    states = {s.name: (s.dtype, tuple(s.sizes)) for s in session.states}
    assert states == {"keys": ("i8", (1, 2, 16, 32)), "keys.scales": ("f32", (1, 2, 16, 1))}
    initial = model.keys.clone()
    for call in calls:
        with torch.no_grad():
            expected = model(*call)
        got = torch.as_tensor(session.run(*call))
        step = expected.abs().amax(-1, keepdim=True) / 127
        assert ((got - expected).abs() <= 0.51 * step).all(), "a row is further off than half a step of its own"
    assert not torch.equal(expected, 2 * initial)


def test_a_decoder_generates_as_in_pytorch():
    model = random_decoder(Shape(context=64))
    tokens = torch.randint(0, 512, (40,), generator=torch.Generator().manual_seed(3))
    call = (tokens[None, :1], torch.tensor([0]))
    whole, small = (tosaic.compile(model, call, target="tosa-fp", kv=kv) for kv in ("float", "int8"))
    model.forget()
    session, expected, got = small.session(), [], []
    for i, token in enumerate(tokens):
        call = (token.reshape(1, 1), torch.tensor([i]))
        with torch.no_grad():
            expected.append(model(*call).flatten())
        got.append(torch.as_tensor(session.run(*call)).flatten())
    expected, got = torch.stack(expected), torch.stack(got)
    decibels = 10 * torch.log10((expected**2).sum() / ((got - expected)**2).sum())
    assert decibels > 40, decibels
    size = {name: sum(t.nbytes for t in artifact.session().state_dict().values()) for name, artifact in
            (("whole", whole), ("small", small))}
    assert size["small"] < 0.3 * size["whole"]


def test_prefill_and_decode_share_it():
    model = random_decoder(Shape(context=32))
    tokens = torch.randint(0, 512, (1, 9), generator=torch.Generator().manual_seed(4))
    programs = {"prefill": torch.export.export(model, (tokens[:, :8], torch.arange(8))),
                "decode": torch.export.export(model, (tokens[:, :1], torch.arange(1)))}
    artifact = tosaic.compile(programs, target="tosa-fp", kv="int8")
    session = artifact.session()
    session.method("prefill").run(tokens[:, :8], torch.arange(8))
    got = torch.as_tensor(session.method("decode").run(tokens[:, 8:], torch.tensor([8])))
    model.forget()
    with torch.no_grad():
        expected = model(tokens, torch.arange(9))[:, -1:]
    assert 10 * torch.log10((expected**2).sum() / ((got - expected)**2).sum()) > 38


class Odd(nn.Module):
    """A running mean: no rows are written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4, 32))

    def forward(self, x):
        self.mean.mul_(0.9).add_(x, alpha=0.1)
        return x - self.mean


def test_other_states_stay_floats():
    x = torch.randn(4, 32)
    artifact = tosaic.compile(Odd(), x, target="tosa-fp", kv="int8")
    assert artifact.pte == tosaic.compile(Odd(), x, target="tosa-fp", tosa_spec="TOSA-1.0+INT+FP").pte
    assert [d.message for d in artifact.summary.messages if d.code == "quantise.float-states"] == [
        "'mean' stays float: only states that are written by rows of 16 or more floats are quantised"]


@pytest.mark.parametrize("target, options", [("tosa-int", {}), ("vgf", {}), ("tosa-fp", {"quantize": "int8"})])
def test_refusals(target, options):
    with pytest.raises(tosaic.Error) as refused:
        tosaic.compile(Odd(), torch.randn(4, 32), target=target, kv="int8", **options)
    assert refused.value.code == "option.kv" and refused.value.help
