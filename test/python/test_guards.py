# SPDX-License-Identifier: Apache-2.0
"""Branches on sizes: torch.export notes what held where it took a side, and the program holds for such sizes alone. And
arithmetic on sizes. What torch's own exported program refuses is refused, what it computes is computed."""

import pytest
import torch
import tosaic
from executors import Both
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")
AUTO = Dim.AUTO


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


class Nested(nn.Module):
    def forward(self, pairs):
        return pairs["a b"][0] * (2 if pairs["a b"][0].shape[0] > pairs["a b"][1].shape[0] else 3)


def checked(x, y):
    torch._check(2 * x.shape[0] >= y.shape[0])
    return x.mean(0) + y.mean(0)


# Name -> (function, sizes of the example, others).
BRANCHES = {
    "even": (lambda x, y: x * 2 if x.shape[0] % 2 == 0 else x * 3, (4, 3), [(6, 3), (5, 3), (2, 9), (7, 2)]),
    "longer": (lambda x, y: x.sum(0) - y.sum(0) if x.shape[0] > y.shape[0] else y.sum(0), (6, 4), [(3, 8), (9, 8), (8, 8)]),
    "checked": (checked, (6, 4), [(2, 4), (2, 5), (9, 2)]),
    "product": (lambda x, y: x if x.shape[0] * y.shape[0] > 20 else x + 1, (6, 5), [(3, 7), (4, 5), (2, 2)]),
    "quotient": (lambda x, y: x.view(4, -1).sum(0), (8, 2), [(4, 2), (12, 3), (6, 2)]),
    "least": (lambda x, y: x[:3] if min(x.shape[0], y.shape[0]) >= 3 else x, (5, 4), [(3, 3), (2, 9), (9, 2)]),
}


def tensors(sizes):
    return tuple(torch.randn(size, 3) for size in sizes)


def wanted(exported, call):
    """What torch's own program makes of it; None where it refuses."""
    try:
        return exported.module()(*call)
    except (AssertionError, RuntimeError):
        return None


def choices(exported, sizes):
    """For each input whose size torch left open."""
    rows = {node.name: node.meta["val"].shape[0] for node in exported.graph.nodes if node.op == "placeholder"}
    return [f"{name}.0={size}" for name, size in zip(("x", "y"), sizes) if not isinstance(rows[name], int)]


@pytest.mark.parametrize("name", BRANCHES)
def test_a_program_holds_for_the_sizes_that_it_was_exported_for(name):
    function, example, others = BRANCHES[name]
    exported = torch.export.export(Of(function), tensors(example), dynamic_shapes=({0: AUTO}, {0: AUTO}))
    session, refused = Both(tosaic.Program.of(exported).session), 0
    for sizes in [example, *others]:
        call = tensors(sizes)
        result = wanted(exported, call)
        chosen = choices(exported, sizes)
        if result is None:
            refused += 1
            with pytest.raises(tosaic.Error, match="model.size|run.input-type"):  # the latter: out of the range
                session.run(*call)
            with pytest.raises(tosaic.Error, match="model.size"):
                tosaic.compile(exported, target="tosa-fp", sizes=chosen)
        else:
            torch.testing.assert_close(session.run(*call), result)
            torch.testing.assert_close(tosaic.compile(exported, target="tosa-fp", sizes=chosen).run(*call), result)
    assert refused


def test_the_refusal_names_what_the_user_wrote():
    exported = torch.export.export(Nested(), ({"a b": [torch.randn(5, 2), torch.randn(3, 2)]},),
                                   dynamic_shapes=({"a b": [{0: AUTO}, {0: AUTO}]},))
    session = tosaic.Program.of(exported).session()
    with pytest.raises(tosaic.Error, match=r"pairs\['a b'\]\[0\]\.size\(\)\[0\] > pairs\['a b'\]\[1\]\.size\(\)\[0\]"):
        session.run({"a b": [torch.randn(3, 2), torch.randn(4, 2)]})


n = Dim("n", min=2, max=20)
ARITHMETIC = {
    "reciprocal": lambda x: x * (1.0 / x.shape[0]),
    "root": lambda x: x / x.shape[0] ** 0.5,
    "inverse root": lambda x: x * x.shape[0] ** -0.5,
    "square": lambda x: x * x.shape[0] ** 2,
    "one and a part": lambda x: x * (1 + 1 / x.shape[0]),
    "quotient of sums": lambda x: x * ((x.shape[0] - 1) / (x.shape[0] + 1)),
    "one of two": lambda x: x * torch.sym_ite(x.shape[0] > 5, 2, 3),
    "the larger": lambda x: x * torch.sym_max(x.shape[0], 5),
    "the smaller": lambda x: x * torch.sym_min(x.shape[0], 5) + x.shape[0] % 3,
    "negative": lambda x: x * -x.shape[0],
}


class One(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_on_sizes(name):
    module = One(ARITHMETIC[name])
    exported = torch.export.export(module, (torch.randn(7, 3),), dynamic_shapes=({0: n},))
    session = Both(tosaic.Program.of(exported).session)
    for size in (2, 4, 5, 6, 20):
        x = torch.randn(size, 3)
        torch.testing.assert_close(session.run(x), module(x))
        torch.testing.assert_close(tosaic.compile(exported, target="tosa-fp", sizes=[f"x.0={size}"]).run(x), module(x))


# One program for all sizes on Vulkan: what it is at a few sizes must be what it is at all of them.
BENDS = {
    "slice of the smaller": (lambda x: x[: torch.sym_min(x.shape[0], 5)] + 1, True),
    "sum of such a slice": (lambda x: x[: torch.sym_min(x.shape[0], 5)].sum(0), True),
    "padded to eight": (lambda x: torch.nn.functional.pad(x, (0, 0, 0, torch.sym_max(8 - x.shape[0], 0))), True),
    "one branch or the other": (lambda x: torch.cond(x.shape[0] > 4, torch.sin, torch.cos, (x,)), True),
    "even": (lambda x: x * 2 if x.shape[0] % 2 == 0 else x * 3, False),
    "more than six": (lambda x: x * 2 if x.shape[0] > 6 else x * 3, False),
    "times the size": (lambda x: x * x.shape[0] + x.shape[0] // 2, False),
    "positions behind a size": (lambda x: x + (torch.arange(3) + x.shape[0]), True),
    "over the root of a size": (ARITHMETIC["root"], False),
    "by the inverse root": (ARITHMETIC["inverse root"], False),
    **{name: (function, False) for name, function in ARITHMETIC.items()},
}


@pytest.mark.parametrize("name", BENDS)
def test_one_program_for_all_sizes_on_vulkan(name):
    """Right at every size that torch's program takes, and refused at the others; or not made at all."""
    function, may_be_refused = BENDS[name]
    module = One(function)
    try:
        exported = torch.export.export(module, (torch.randn(8, 3),), dynamic_shapes=({0: AUTO(min=2, max=20)},))
    except Exception as why:
        pytest.skip(f"torch does not export it: {why}"[:200])
    try:
        session = tosaic.compile(exported, target="vulkan").session()
    except tosaic.Error as why:
        assert "lower.sizes" in str(why) or "all has to run on the device" in str(why)
        assert may_be_refused or name in ARITHMETIC, why
        return
    held = 0
    for size in range(2, 21):
        x = torch.randn(size, 3)
        result = wanted(exported, (x,))
        if result is None:
            with pytest.raises(tosaic.Error, match="model.size|run.input-type"):
                session.run(x)
        else:
            held += 1
            torch.testing.assert_close(session.run(x), result, rtol=1e-4, atol=1e-4)
    assert held


@pytest.mark.parametrize("strict", [False, True])
def test_guards_of_calls_by_keywords(strict):
    exported = torch.export.export(Of(BRANCHES["longer"][0]), (), {"x": torch.randn(6, 3), "y": torch.randn(4, 3)},
                                   dynamic_shapes={"x": {0: AUTO}, "y": {0: AUTO}}, strict=strict)
    program = tosaic.Program.of(exported)
    session = Both(program.session)
    x, y = tensors((9, 8))
    torch.testing.assert_close(session.run(x=x, y=y), x.sum(0) - y.sum(0))
    with pytest.raises(tosaic.Error, match="model.size"):
        session.run(x=y, y=x)
