# SPDX-License-Identifier: Apache-2.0
"""Calls that once ended a compilation: what PyTorch says of them leads nowhere, so the core has them."""

import pytest
import tosaic
import torch
from functions import Of
from torch.nn import functional as F

X = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))


def flat(value):
    return [v for item in value for v in flat(item)] if isinstance(value, (tuple, list)) else [value]


def expect_right(function, *inputs, targets=("tosa-fp", "vulkan")):
    want = flat(function(*inputs))
    for target in targets:
        got = flat(tosaic.compile(Of(function), inputs, target).run(*inputs))
        assert [(g.dtype, g.shape) for g in got] == [(w.dtype, w.shape) for w in want]
        for g, w in zip(got, want):
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4, equal_nan=True)


def spectral(x):
    """A Fourier neural operator's layer: the low frequencies of a new spectrum are written."""
    weight = torch.complex(torch.ones(3, 4, 4), torch.arange(48.0).reshape(3, 4, 4) / 48)
    out = torch.zeros(x.shape[0], 4, x.size(-1) // 2 + 1, dtype=torch.cfloat)
    out[:, :, :4] = torch.einsum("bix,iox->box", torch.fft.rfft(x)[:, :, :4], weight)
    return torch.fft.irfft(out, n=x.size(-1))


def diagonal_states(u, c, a):
    """A diagonal state space (S4D): its kernel is a complex product over the states."""
    c, a = torch.view_as_complex(c), torch.complex(-torch.exp(a), a)
    k = 2 * torch.einsum("hn,hnl->hl", c * (torch.exp(a) - 1) / a, torch.exp(a[..., None] * torch.arange(16))).real
    return torch.fft.irfft(torch.fft.rfft(u, n=32) * torch.fft.rfft(k, n=32), n=32)[..., :16]


CASES = {
    "cummax": (lambda x: torch.cummax(x, 1), X), "cummin": (lambda x: torch.cummin(x, 0)[0], X),
    "cummax of ties": (lambda x: torch.cummax(x.round(), 1), X),
    "logcumsumexp": (lambda x: torch.logcumsumexp(30 * x, 0), X), "cumprod": (lambda x: torch.cumprod(x, 1), X),
    "stft": (lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs(), torch.randn(2, 64)),
    "hamming": (lambda x: x * torch.hamming_window(6), X), "kaiser": (lambda x: x * torch.kaiser_window(6, True, 5.0), X),
    "logspace": (lambda x: x * torch.logspace(0, 1, 6), X),
    "affine_grid": (lambda t, i: F.grid_sample(i, F.affine_grid(t, [1, 3, 8, 8], align_corners=False), align_corners=False),
                    torch.eye(2, 3)[None] * 0.9, torch.randn(1, 3, 8, 8)),
    "grid_sample bicubic": (lambda i, g: F.grid_sample(i, g, mode="bicubic", align_corners=False), torch.randn(1, 3, 8, 8),
                            torch.rand(1, 4, 4, 2) * 2 - 1),
    "rrelu": (lambda x: F.rrelu(x), X), "batch statistics": (lambda x: F.batch_norm(x, None, None, training=True), X),
    "einsum of a diagonal": (lambda x: torch.einsum("ii->i", x), X[:, :5]), "trace": (lambda x: torch.einsum("ii", x), X[:, :5]),
    "sums of nothing": (lambda x: (x[:0].sum() + x, x[:, :0].sum(1), x[:0].prod(0), x[:0].norm() + x), X),
    "mean of nothing": (lambda x: x[:0].mean(0) + x, X), "truth of nothing": (lambda x: (x[:0] > 0).all() & (x > 0), X),
    "spectral": (spectral, torch.randn(2, 3, 16)),
    "diagonal states": (diagonal_states, torch.randn(2, 4, 16), torch.randn(4, 8, 2), torch.rand(4, 8)),
    "complex matrices": (lambda x: torch.view_as_real(torch.complex(x, 2 * x) @ torch.complex(x, -x).mT), X),
    "complex linear": (lambda x, w: torch.view_as_real(F.linear(torch.complex(x, -x), torch.complex(w, w), torch.complex(w[:, 0], w[:, 1]))),
                       X, torch.randn(3, 6)),
    "complex conv": (lambda x, w: torch.view_as_real(F.conv1d(torch.complex(x, -x), torch.complex(w, w), torch.complex(w[:, 0, 0], w[:, 0, 1]))),
                     torch.randn(1, 2, 9), torch.randn(3, 2, 3)),
    "three complex factors": (lambda x: torch.einsum("i,i,i->i", *[torch.complex(x[k], x[k + 1]) for k in range(3)]).abs(), X),
    "complex ones": (lambda x: torch.view_as_real(torch.ones(5, 6, dtype=torch.cfloat) * x + torch.full((5, 6), 1 + 2j)), X),
    "one pixel": (lambda x: [F.interpolate(x, size=(5, 7), mode=m, align_corners=c)
                             for m, c in (("bilinear", True), ("bilinear", False), ("bicubic", True), ("nearest", None))],
                  torch.randn(2, 3, 1, 1)),
}


@pytest.mark.filterwarnings("ignore::tosaic.CompileWarning")  # the floating-point profile has no choice among int32
@pytest.mark.parametrize("name", CASES)
def test_calls(name):
    function, *inputs = CASES[name]
    expect_right(function, *inputs)


class WritesOut(torch.nn.Module):
    """As kornia's dilation: `out` is read before and after, and through a view."""

    def forward(self, x):
        y, before = x.clone(), x.to(torch.promote_types(x.dtype, torch.float32)) + 1
        row = y[1]
        torch.maximum(y, before.flip(0), out=y)
        torch.add(row, before[0], alpha=2, out=row)
        return torch.exp(y, out=before) + before, y, row


def test_what_is_written_out_in_a_file(tmp_path):
    """Of a program in Python, PyTorch's decompositions leave neither call."""
    torch.export.save(torch.export.export(WritesOut(), (X,)), tmp_path / "m.pt2")
    results = tosaic.compile(tmp_path / "m.pt2", None, "tosa-fp").run(X)
    torch.testing.assert_close(results, WritesOut()(X), rtol=1e-5, atol=1e-6)


class WritesParameter(torch.nn.Module):
    """As transformers' RWKV scales its weights when it is first called."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(6), requires_grad=False)

    def forward(self, x):
        self.weight.mul_(0.5)
        return x * self.weight


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
def test_a_parameter_that_is_written(target):
    artifact = tosaic.compile(torch.export.export(WritesParameter(), (X,)), target=target)
    for run in (1, 2, 3):
        torch.testing.assert_close(artifact.run(X), X * 0.5**run)


@torch.library.custom_op("tosaic_tests::fill", mutates_args=("x",))
def fill(x: torch.Tensor) -> None:
    x.fill_(1)


class Fills(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        torch.ops.tosaic_tests.fill(y)
        return y + x


def test_an_operator_without_results_is_explained():
    explanation = tosaic.explain(Fills(), target="tosa-fp", example_inputs=(X,))
    assert "tosaic_tests.fill.default is not known to tosaic" in str(explanation)
    assert "has no results" in str(explanation.summary.messages) or "has no results" in str(explanation)
    with pytest.raises(tosaic.Error, match="what it does to its operands is not known") as refused:
        tosaic.compile(Fills(), (X,), "tosa-fp")
    assert refused.value.code == "model.effect"


def test_a_hint_leads_on():
    """What PyTorch says in no other operators is not sent to PyTorch again; a lowering, as the hint says, helps."""
    module = Of(lambda x: torch.special.bessel_j0(x))
    with pytest.raises(tosaic.Error, match="special_bessel_j0") as refused:
        tosaic.compile(module, (X,), "tosa-fp")
    assert "run_decompositions" not in str(refused.value) and "tosaic.lowering" in refused.value.help

    @tosaic.lowering("tosaic_tests::fourth")
    def fourth_in_others(x):
        return x * x * x * x

    artifact = tosaic.compile(Of(fourth), (X,), "tosa-fp")
    torch.testing.assert_close(artifact.run(X), X**4)


@torch.library.custom_op("tosaic_tests::fourth", mutates_args=())
def fourth(x: torch.Tensor) -> torch.Tensor:
    return x**4


@fourth.register_fake
def _(x):
    return torch.empty_like(x)


class Masked(torch.nn.Module):
    def forward(self, x, *, mask):
        return torch.relu(x) * mask


def test_arguments_by_position_and_by_name():
    mask = torch.ones(6)
    samples = [((X,), {"mask": mask}), (X, {"mask": mask}), {"x": X, "mask": mask}]
    artifact = tosaic.compile(Masked(), (X,), "tosa-int", example_kwargs={"mask": mask}, calibration=samples)
    assert artifact.summary.samples == 3
    assert torch.equal(artifact.run(X, mask=mask), artifact.run(x=X, mask=mask))


def test_names_of_what_was_exported_by_position():
    artifact = tosaic.compile(torch.nn.Bilinear(3, 4, 2), (torch.ones(2, 3), torch.ones(2, 4)), "tosa-fp")
    a, b = torch.randn(2, 3), torch.randn(2, 4)
    want = artifact.run(a, b)
    assert torch.equal(artifact.run(input1=a, input2=b), want) and torch.equal(artifact.run(a, input2=b), want)
    assert torch.equal(artifact.run(input2=b, input1=a), want)
