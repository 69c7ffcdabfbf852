# SPDX-License-Identifier: Apache-2.0
"""Quotients, roots, logarithms and means whose last bit decides, remainders of large quotients, and int64 beyond 32
bits: PyTorch's numbers on every float target."""
import math
import warnings

import pytest
import torch
from functions import Of

import tosaic

TARGETS = ["tosa-fp", "vgf", "vulkan"]
N = torch.arange(1, 5000.0)
IDS = torch.arange(1, 5000)
K = torch.arange(0, 200.0)
FIVES = torch.arange(1, 1001.0).reshape(-1, 5)

WHOLE = {
    "ceil": (lambda x: torch.ceil(x / 7), N),
    "ceil of ids": (lambda i: torch.ceil(i / 13), IDS),
    "floor": (lambda x: torch.floor(x / 41), N),
    "floor of a fraction": (lambda x: torch.floor(x / 0.02), K * torch.tensor(0.02)),
    "trunc": (lambda x: torch.trunc(x / -41), N),
    "round": (lambda x: torch.round(x / 10), N),
    "frac": (lambda x: torch.frac(x / 7) == 0, N),
    "int": (lambda x: (x / 55).int(), N),
    "long": (lambda x: (x / 55).long(), N),
    "floor of a tensor": (lambda a, b: torch.floor(a / b), N * 3, N),
    "floor of a constant": (lambda x: torch.floor(x / torch.tensor([7.0, 13.0, 41.0])[:, None]), N),
    "broadcast divisor": (lambda a, b: torch.floor(a[None] / b[:, None]), N, torch.tensor([3.0, 7.0, 49.0])),
    "is one": (lambda a: a / a == 1, N),
    "is one, of huge and tiny numbers": (lambda a: a / a == 1, torch.logspace(-37, 38, 1001)),
    "equal": (lambda a, b: a / b == 3, N * 3, N),
    "at least": (lambda a, b: a / b >= 3, N * 3, N),
    "less": (lambda a, b: a / b < 3, N * 3, N),
    "sign": (lambda a, b: torch.sign(a / b - 3), N * 3, N),
    "through other operators": (lambda x: torch.floor(torch.cat([x / 7, -(x / 13)]).reshape(2, -1).T + 1), N),
    "of a quotient": (lambda x: torch.floor(x / 3 / 7), N * 21),
    "addcdiv": (lambda a, b: torch.floor(torch.addcdiv(torch.ones(1), a, b)), N * 3, N),
    "inverse": (lambda x: 1 / x == torch.tensor(1 / 41), torch.full((8,), 41.0)),
    "mean": (lambda x: torch.floor(x.mean(1)), FIVES.round()),
    "mean of all": (lambda x: x.mean() == 7, torch.full((49,), 7.0)),
    "sqrt": (lambda x: torch.floor(torch.sqrt(x)), K * K),
    "power": (lambda x: torch.floor(x ** 0.5), K * K),
    "is a square": (lambda x: torch.sqrt(x) == torch.sqrt(x).round(), torch.arange(0, 3000.0)),
    "log2": (lambda x: torch.floor(torch.log2(x)), 2.0 ** torch.arange(-20, 100.0)),
    "log10": (lambda x: torch.floor(torch.log10(x)), torch.tensor([10.0**k for k in range(11)])),
    "exp2": (lambda k: torch.exp2(k).int(), torch.arange(0, 31.0)),
    "cubes of tensors": (lambda a, b: torch.pow(a, b).int(), torch.arange(-200.0, 201), torch.full((401,), 3.0)),
    "powers of tensors": (lambda a, b: torch.pow(a, b).int(), torch.full((16,), -3.0), torch.arange(0, 16.0)),
    "a high power": (lambda x: (x**20).int(), torch.tensor([1.0, -2.0, 2.0, 0.0])),
    "rsqrt": (lambda x: torch.floor(1 / torch.rsqrt(x)), K * K),
    "distances": (lambda x: torch.floor(torch.cdist(x[:, None] * torch.tensor([3.0, 4.0]), torch.zeros(1, 2))), K),
    "sum": (lambda x: (x / x).sum() == 4999, N),
    "largest": (lambda a, b: torch.floor((a / b).amax()), N * 3, N),
    "first of equals": (lambda a, b: (a / b).reshape(-1, 7).argmax(1), N[:4998] * 3, N[:4998]),
    "tens": (lambda x: torch.round(x, decimals=-1), N),
    "tenths": (lambda x: torch.round(x, decimals=1), N / 10 + 0.04),
    "power of two": (lambda k: (2.0**k).int(), torch.arange(0, 31.0)),
    "power of ten": (lambda k: (10.0**k).int(), torch.arange(0, 10.0)),
    "folded": (lambda x: x + torch.floor(torch.arange(1, 5000.0) / 7), N),
    "half": (lambda x: torch.floor(x / 7), torch.arange(1, 2000.0).half()),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_whole(name, target):
    function, *inputs = WHOLE[name]
    wanted = function(*inputs)
    got = tosaic.compile(Of(function), tuple(inputs), target=target).run(*inputs)
    assert int((got != wanted).sum()) == 0, (got[got != wanted][:5], wanted[got != wanted][:5])


VARYING = {"quotient": lambda x: torch.floor(x / 7), "mean": lambda x: torch.floor(x.mean()), "log2": lambda x: torch.floor(torch.log2(x)),
           "remainder": lambda x: x % 7, "floor_divide": lambda x: x // 7}


@pytest.mark.parametrize("name", VARYING)
def test_whole_numbers_where_sizes_vary(name):
    sizes = (({0: torch.export.Dim("n", min=2, max=1000)},),)
    program = torch.export.export(Of(VARYING[name]), (N[:100],), dynamic_shapes=sizes)
    artifact = tosaic.compile(program, target="vulkan")
    for count in (2, 100, 333, 1000):
        torch.testing.assert_close(artifact.run(N[:count]), VARYING[name](N[:count]), rtol=0, atol=0)


BY = {"36": 36.0, "2 pi": 2 * math.pi, "a third": 1 / 3, "-7.5": -7.5, "a small number": 1e-6, "a large one": 1e20}
LARGE = torch.tensor([2749682432.0, 3e8, 16777215.0, 1000001.0, -1000003.0, 1e4, -7.0, 7.0, 0.0, 1e30, -1e25, 3.4e38, 35.999996,
                      1e-30, math.inf, math.nan])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("by", BY)
def test_remainders_of_large_quotients(by, target):
    divisor = BY[by]
    function = lambda x: (torch.remainder(x, divisor), torch.fmod(x, divisor), torch.floor_divide(x, divisor))
    x = LARGE if by != "a small number" else LARGE[:9]
    got = tosaic.compile(Of(function), (x,), target=target).run(x)
    for g, w in zip(got[:2], function(x)):
        torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)
    quotient = function(x)[2]
    whole, finite = quotient.abs() < 2.0**115, quotient.isfinite()  # beyond it a float is off by a bit or two
    torch.testing.assert_close(got[2][whole], quotient[whole], rtol=0, atol=0)
    torch.testing.assert_close(got[2][finite], quotient[finite], rtol=2.0**-22, atol=0)


@pytest.mark.parametrize("target", TARGETS)
def test_remainders_of_tensors(target):
    torch.manual_seed(0)
    x = torch.randn(4000) * 10 ** (torch.rand(4000) * 20)
    d = torch.randn(4000) * 10 ** (torch.rand(4000) * 8 - 4)
    function = lambda x, d: (torch.remainder(x, d), torch.fmod(x, d))
    for g, w in zip(tosaic.compile(Of(function), (x, d), target=target).run(x, d), function(x, d)):
        torch.testing.assert_close(g, w, rtol=0, atol=0)
    whole = torch.randint(-2**31, 2**31, (1000,), dtype=torch.int32)
    function = lambda i: (i.float() % 36, torch.fmod(i.float(), 7.25))
    for g, w in zip(tosaic.compile(Of(function), (whole,), target=target).run(whole), function(whole)):
        torch.testing.assert_close(g, w, rtol=0, atol=0)


class Counter(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_buffer("n", torch.tensor([start]))

    def forward(self, x):
        self.n += 1
        return x * 2, self.n + 0


BEYOND = {
    "square": (lambda i: i * i, torch.tensor([100_000, -3])),
    "square as a float": (lambda i, x: (i * i).float() + x, torch.tensor([100_000, -3]), torch.ones(2)),
    "large input": (lambda i: i + 1, torch.tensor([2**40, -2**40])),
    "large input as a float": (lambda i, x: i.float() * x, torch.tensor([2**40, 7]), torch.ones(2)),
    "moved": (lambda i, x: i.reshape(2, 2).T.float() * x, torch.tensor([2**40, 7, -2**33, 1]), torch.ones(2, 2)),
    "compared": (lambda i, x: torch.where(i == 7, x, -x), torch.tensor([2**40, 7, -2**40]), torch.ones(3)),
    "bounded": (lambda i, x: i.clamp(-5, 5).float() * x, torch.tensor([2**40, 7, -2**40]), torch.ones(3)),
    "bounded above": (lambda i, x: i.clamp(max=5).float() * x, torch.tensor([2**40, 7, -2**40]), torch.ones(3)),
    "sum": (lambda i: i.sum(), torch.tensor([2**31 - 1, 2**31 - 1, 5])),
    "running sum": (lambda i, x: i.cumsum(0).float() * x, torch.tensor([2**31 - 1, 2**31 - 1, 5]), torch.ones(3)),
    "of floats": (lambda x: (x * 1e6).long() * 1000, torch.tensor([7.0, -3.0])),
    "hashed": (lambda i, t: t[(i * 2654435761) % 7], torch.tensor([2**40 + 1, 12345]), torch.arange(7.0)),
    "hashed by a small number": (lambda i, t: t[(i * 31) % 7], torch.tensor([2**40 + 1, 123456789]), torch.arange(7.0)),
    "indices": (lambda i, t: t[i] * t[i + 1], torch.tensor([2, 5]), torch.arange(7.0)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BEYOND)
def test_integers_beyond_32_bits(name, target):
    function, *inputs = BEYOND[name]
    wanted = function(*inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tosaic.CompileWarning)
        warnings.filterwarnings("ignore", ".*nothing-delegated.*")
        artifact = tosaic.compile(Of(function), tuple(inputs), target=target)
    torch.testing.assert_close(artifact.run(*inputs), wanted, rtol=0, atol=0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_counter_beyond_32_bits(target):
    x, module = torch.ones(3), Counter(2**31 - 3)
    session = tosaic.compile(Counter(2**31 - 3), (x,), target=target).session()
    for _ in range(5):
        torch.testing.assert_close(session.run(x)[1], module(x)[1], rtol=0, atol=0)


def test_what_one_delegate_narrows_is_a_warning():
    i = torch.tensor([3, 4])
    with pytest.warns(tosaic.CompileWarning, match="int64-narrowed"):
        warnings.filterwarnings("ignore", ".*int64-input.*")
        tosaic.compile(Of(lambda i: i * i), (i,), target="tosa-fp", require_full_delegation=True)
    with pytest.warns(tosaic.CompileWarning, match="int64-input"):
        tosaic.compile(Of(lambda i: i.float()), (i,), target="tosa-fp", require_full_delegation=True)
    with warnings.catch_warnings():  # an index beyond 32 bits is outside the table all the same
        warnings.simplefilter("error", tosaic.CompileWarning)
        tosaic.compile(Of(lambda i, t: t[i]), (i, torch.ones(9)), target="tosa-fp", require_full_delegation=True)


def test_whole_numbers_beside_booleans_outside_a_delegate():
    """3 was stored as True: a kernel had another number, or none of that type."""
    def arithmetic(mask):
        return mask * 3, mask + 2, mask == 2, mask == 1, mask > 0, mask * True, mask + 1, 2 - mask.long(), mask & True

    mask = torch.tensor([True, False, True])
    artifact = tosaic.compile(Of(arithmetic), mask, target="tosa-fp")
    for wanted, given in zip(arithmetic(mask), artifact.run(mask), strict=True):
        assert wanted.dtype == given.dtype and torch.equal(wanted, given)
