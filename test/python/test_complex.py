# SPDX-License-Identifier: Apache-2.0
"""Complex tensors inside programs: Fourier transforms, spectrograms, arithmetic. They are pairs of floats by the time anything
runs, so each is run where floats run, and compared with eager PyTorch."""
import numpy as np
import pytest
import tosaic
import torch
from functions import Of
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")

real = torch.view_as_real


def exported(f, *inputs, **options):
    module = f if isinstance(f, nn.Module) else Of(f)
    return torch.export.export(module.eval(), inputs, **options)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same(f, *inputs, target="tosa-fp", **session):
    """Eager PyTorch's results, to the rounding of sums: of the largest one's size."""
    program = exported(f, *inputs)
    with torch.no_grad():
        wanted = program.module()(*inputs)
    got = tosaic.compile(program, target=target).session(**session).run(*inputs)
    got = [torch.as_tensor(np.asarray(x)) for x in (got if isinstance(got, (tuple, list)) else [got])]
    wanted = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        assert g.shape == w.shape
        assert (g - w).abs().max() <= 3e-6 * max(1.0, float(w.abs().max()))


LENGTHS = (8, 7, 12, 30)
NORMS = (None, "ortho", "forward")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_one_dim(n, norm):
    x = noise(3, n, 2)
    c = torch.view_as_complex(noise(3, n, 2, 2))
    same(lambda x: real(torch.fft.rfft(x, dim=1, norm=norm)), x)
    same(lambda x: real(torch.fft.fft(x, dim=-2, norm=norm)), x)
    same(lambda x: real(torch.fft.ifft(torch.view_as_complex(x), dim=1, norm=norm)), real(c))
    same(lambda x: torch.fft.irfft(torch.view_as_complex(x), dim=1, norm=norm), real(c))
    same(lambda x: torch.fft.irfft(torch.view_as_complex(x), n=n + 1, dim=1, norm=norm), real(c))


@pytest.mark.parametrize("n", (5, 8, 11))
def test_cut_and_filled(n):
    x, pairs = noise(2, 8), noise(2, 8, 2)
    same(lambda x: real(torch.fft.rfft(x, n=n)), x)
    same(lambda x: real(torch.fft.fft(torch.view_as_complex(x), n=n)), pairs)
    same(lambda x: torch.fft.irfft(torch.view_as_complex(x), n=n), pairs)
    same(lambda x: torch.fft.irfft(x, n=n), x)
    same(lambda x: torch.fft.hfft(torch.view_as_complex(x), n=n), pairs)
    same(lambda x: real(torch.fft.ihfft(x, n=n).resolve_conj()), x)
    same(lambda x: real(torch.fft.fft2(x, s=(n, 3), dim=(1, 0))), x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", ((8, 8), (7, 12), (2, 12, 7), (2, 3, 30, 8)))
def test_more_dims(shape, norm):
    x = noise(*shape)
    half = torch.view_as_complex(noise(*shape, 2))
    same(lambda x: real(torch.fft.rfft2(x, norm=norm)), x)
    same(lambda x: real(torch.fft.fft2(x, norm=norm)), x)
    same(lambda x: real(torch.fft.ifft2(torch.view_as_complex(x), norm=norm)), real(half))
    same(lambda x: torch.fft.irfft2(torch.view_as_complex(x), norm=norm), real(half))
    same(lambda x: real(torch.fft.rfftn(x, norm=norm)), x)
    same(lambda x: torch.fft.irfftn(torch.view_as_complex(x), dim=(1, 0), norm=norm), real(half))
    same(lambda x: real(torch.fft.fftn(x, dim=(0,), norm=norm)), x)
    same(lambda x: real(torch.fft.ifftn(torch.view_as_complex(x), norm=norm)), real(half))


@pytest.mark.parametrize("mode", (0, 1, 2))
def test_what_transforms_are_made_of(mode):
    aten = torch.ops.aten
    same(lambda x: real(aten._fft_r2c(x, [0, 2], mode, True)), noise(4, 2, 7))
    same(lambda x: real(aten._fft_r2c(x, [1], mode, False)), noise(4, 6))
    for forward in (True, False):
        same(lambda x: real(aten._fft_c2c(torch.view_as_complex(x), [0, 1], mode, forward)), noise(4, 5, 2))
    same(lambda x: aten._fft_c2r(torch.view_as_complex(x), [0, 1], mode, 8), noise(4, 5, 2))


ARITHMETIC = {
    "mul": lambda a, c, r: a * c,
    "mul_real": lambda a, c, r: a * r,
    "mul_real_first": lambda a, c, r: r * a,
    "mul_number": lambda a, c, r: a * 2.5 - 3 * c,
    "mul_complex_number": lambda a, c, r: a * (1 + 2j),
    "mul_broadcast": lambda a, c, r: a * c[0],
    "add": lambda a, c, r: a + c,
    "add_alpha": lambda a, c, r: torch.add(a, c, alpha=3),
    "add_real": lambda a, c, r: a + r,
    "sub_real_first": lambda a, c, r: r - a,
    "sub_number": lambda a, c, r: a - 2,
    "rsub_number": lambda a, c, r: 2 - a,
    "add_complex_number": lambda a, c, r: a + 2j,
    "div": lambda a, c, r: a / c,
    "div_real": lambda a, c, r: a / (r.abs() + 1),
    "div_number": lambda a, c, r: a / 3,
    "conj": lambda a, c, r: a * c.conj(),
    "conj_physical": lambda a, c, r: torch.conj_physical(a),
    "neg": lambda a, c, r: -a,
    "square": lambda a, c, r: a.square() + c**2,
    "reciprocal": lambda a, c, r: a.reciprocal(),
    "exp": lambda a, c, r: a.exp(),
    "matmul": lambda a, c, r: a @ c.mT,
    "polar": lambda a, c, r: torch.polar(r.abs(), r),
    "complex": lambda a, c, r: torch.complex(r, r * 2),
    "complex_broadcast": lambda a, c, r: torch.complex(r, r[0]),
    "turned_real": lambda a, c, r: r * 1j,
    "log": lambda a, c, r: a.log(),
    "where": lambda a, c, r: torch.where(r > 0, a, c * 2),
    "to": lambda a, c, r: r.to(torch.complex64) + a,
    "detach": lambda a, c, r: a.clone().detach().contiguous(),
}
MOVED = {
    "view": lambda a: a.view(4, 6),
    "reshape": lambda a: a.reshape(-1),
    "permute": lambda a: a.permute(2, 0, -2),
    "transpose": lambda a: a.transpose(-1, 0),
    "unsqueeze": lambda a: a.unsqueeze(-1).unsqueeze(1),
    "squeeze": lambda a: a[:1].squeeze(0),
    "select": lambda a: a[1, :, -2],
    "slice": lambda a: a[..., 1:3],
    "cat": lambda a: torch.cat([a, a.real, a * 2], -1),
    "stack": lambda a: torch.stack([a, a], -1),
    "flip": lambda a: a.flip(-1, 0),
    "roll": lambda a: a.roll((1, 2), (0, -1)),
    "shift": lambda a: torch.fft.fftshift(a),
    "shift_one": lambda a: torch.fft.ifftshift(a, dim=-2),
    "expand": lambda a: a[:, :1].expand(2, 5, 4),
    "repeat": lambda a: a.repeat(1, 2, 1),
    "flatten": lambda a: a.flatten(1),
    "unflatten": lambda a: a.unflatten(-1, (2, 2)),
    "split": lambda a: torch.cat(a.split(2, -1), 0),
    "unbind": lambda a: a.unbind(-1)[1],
    "sum": lambda a: a.sum(-1) + a.mean((-1,)),
    "sum_all": lambda a: a.sum() + a.mean(),
    "pad": lambda a: torch.nn.functional.pad(a, (1, 2)),
    "cumsum": lambda a: a.cumsum(-1),
}
PARTS = {
    "abs": lambda a: a.abs(),
    "angle": lambda a: a.angle(),
    "parts": lambda a: a.real * 2 + a.imag,
    "power": lambda a: a.abs().pow(2.0),
    "power_by_conj": lambda a: (a * a.conj()).real,
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name):
    f, shape = ARITHMETIC[name], (3, 4, 2)
    as_complex = torch.view_as_complex
    same(lambda a, c, r: real(f(as_complex(a), as_complex(c), r).resolve_conj()),
         noise(*shape), noise(*shape, seed=1), noise(3, 4, seed=2))


@pytest.mark.parametrize("name", MOVED)
def test_movement(name):
    f = MOVED[name]
    same(lambda x: real(f(torch.view_as_complex(x))), noise(2, 3, 4, 2))


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    f = PARTS[name]
    same(lambda x: f(torch.view_as_complex(x)), noise(2, 3, 4, 2))


class Spectrogram(nn.Module):
    """As torchaudio's."""

    def __init__(self, n_fft=32, hop=None, win=None, power=2.0, center=True, normalized=False, onesided=True):
        super().__init__()
        self.n_fft, self.win = n_fft, win or n_fft
        self.hop, self.power = hop or self.win // 2, power
        self.options = {"center": center, "normalized": normalized, "onesided": onesided}
        self.register_buffer("window", torch.hann_window(self.win))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        y = torch.stft(rows, self.n_fft, self.hop, self.win, self.window, return_complex=True, pad_mode="reflect",
                       **self.options)
        y = y.reshape(x.shape[:-1] + y.shape[-2:])
        if self.power is None:
            return real(y)
        return y.abs() if self.power == 1.0 else y.abs().pow(self.power)


class MelSpectrogram(nn.Module):
    def __init__(self, mels=8, **options):
        super().__init__()
        self.spectrogram = Spectrogram(**options)
        bank = torch.rand(self.spectrogram.n_fft // 2 + 1, mels, generator=torch.Generator().manual_seed(3))
        self.register_buffer("bank", bank)

    def forward(self, x):
        return torch.matmul(self.spectrogram(x).transpose(-1, -2), self.bank).transpose(-1, -2).clamp(min=1e-5).log()


SPECTROGRAMS = {
    "plain": Spectrogram(),
    "magnitude": Spectrogram(power=1.0, hop=5),
    "complex": Spectrogram(power=None, n_fft=30, hop=7),
    "short_window": Spectrogram(n_fft=32, win=20, hop=8),
    "odd": Spectrogram(n_fft=25, win=16, hop=4, power=None),
    "not_centred": Spectrogram(center=False, hop=10),
    "normalised": Spectrogram(normalized=True),
    "two_sided": Spectrogram(onesided=False, power=None),
    "mel": MelSpectrogram(n_fft=64, win=40, hop=16),
}


@pytest.mark.parametrize("name", SPECTROGRAMS)
def test_spectrogram(name):
    same(SPECTROGRAMS[name], noise(2, 160))


def test_spectrogram_of_channels_and_of_one_signal():
    same(Spectrogram(), noise(2, 3, 100))
    same(lambda x: torch.stft(x, 16, return_complex=True).abs(), noise(100))  # no window, a quarter frame apart


@pytest.mark.parametrize("options", ({}, {"length": 100}, {"length": 93}, {"normalized": True}, {"center": False}))
def test_back_in_time(options):
    window = torch.hann_window(16) + 0.1
    same_options = {k: v for k, v in options.items() if k != "length"}

    def f(x):
        y = torch.stft(x, 16, 4, window=window, return_complex=True, **same_options)
        return torch.istft(y * 0.5, 16, 4, window=window, **options)

    same(f, noise(2, 100))
    same(f, noise(100))


class Filtered(nn.Module):
    """A round trip through the spectrum, as in global filter networks."""

    def __init__(self, n):
        super().__init__()
        self.gain = nn.Parameter(noise(n // 2 + 1, 2, seed=5))

    def forward(self, x):
        y = torch.fft.rfft(x, norm="ortho") * torch.view_as_complex(self.gain)
        return torch.fft.irfft(y, n=x.shape[-1], norm="ortho")


@pytest.mark.parametrize("n", LENGTHS)
def test_round_trip(n):
    same(Filtered(n), noise(3, n))


def doubled_parts(x):
    y = torch.fft.fft(x)
    real(y)[..., 0].mul_(2)
    y.imag.add_(1)
    return real(y)


def filled(x):
    y = torch.fft.rfft(x)
    y[:, 0] = 0
    y[:, 1:3].mul_(1 + 2j)
    y += y * x[:, :1]
    return real(y)


def written_input(x):
    y = torch.view_as_complex(x.clone())
    y.copy_(y * y)
    y[0].fill_(2)
    return real(y)


EVERYWHERE = {
    "filtered": (Filtered(12), noise(3, 12)),
    "rfft2": (lambda x: real(torch.fft.rfft2(x)), noise(2, 8, 7)),
    "spectrogram": (SPECTROGRAMS["short_window"], noise(2, 160)),
    "mel": (SPECTROGRAMS["mel"], noise(2, 160)),
    "angle": (lambda x: torch.fft.fft(x).angle(), noise(2, 7) + 3),
    "in_place": (filled, noise(4, 8)),
    "back": (lambda x: torch.istft(torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True), 16, 4,
                                   window=torch.ones(16)), noise(2, 64)),
}


@pytest.mark.parametrize("target", ("tosa-fp", "vgf", "vulkan"))
@pytest.mark.parametrize("name", EVERYWHERE)
def test_targets(name, target):
    f, x = EVERYWHERE[name]
    same(f, x, target=target)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_decomposed(name):
    f, x = EVERYWHERE[name]
    program = exported(f, x).run_decompositions({})
    got = np.asarray(tosaic.compile(program, target="tosa-fp").run(x))
    wanted = program.module()(x).detach()
    assert np.abs(got - wanted.numpy()).max() <= 3e-6 * max(1.0, float(wanted.abs().max()))


def test_in_place():
    same(doubled_parts, noise(4, 8))
    same(filled, noise(4, 8))
    same(written_input, noise(4, 8, 2))


class Kept(nn.Module):
    """Complex parameters and buffers, as filters are kept."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.view_as_complex(noise(7, 2, seed=9)))
        self.register_buffer("turn", torch.view_as_complex(noise(2, 3, 7, 2, seed=4))[1, :, 1:6])

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=12), real((torch.fft.fft(x)[:, :5] * self.turn).clone())


@pytest.mark.parametrize("saved", (False, True))
def test_constants(saved, tmp_path):
    x = noise(3, 12)
    program = exported(Kept(), x)
    source = program
    if saved:
        torch.export.save(program, source := str(tmp_path / "kept.pt2"))
    for got, wanted in zip(tosaic.compile(source, target="tosa-fp").run(x), program.module()(x)):
        assert np.abs(np.asarray(got) - wanted.detach().numpy()).max() <= 1e-5


@pytest.mark.parametrize("executor", ("cpu", "interp"))
def test_executors(executor):
    for f, x in EVERYWHERE.values():
        same(f, x, executor=executor)


def test_angles_and_conjugates_of_real_numbers():
    same(lambda x: x.angle() + torch.real(x) + x.conj() + x.resolve_conj(), noise(4, 5))


def test_sizes_that_vary():
    """A spectrogram of whichever batch comes."""
    x = noise(3, 160)
    program = exported(SPECTROGRAMS["mel"], x, dynamic_shapes={"x": {0: Dim("batch", min=2, max=4)}})
    for batch in (2, 4):
        x = noise(batch, 160, seed=batch)
        got = tosaic.compile(program, target="tosa-fp", sizes=f"x.0={batch}").run(x)
        assert np.abs(np.asarray(got) - program.module()(x).numpy()).max() <= 1e-5


@pytest.mark.parametrize("name", ("filtered", "mel"))
def test_saved(name, tmp_path):
    """A .pte that stands by itself: no operator of it is one on complex numbers."""
    f, x = EVERYWHERE[name]
    program = exported(f, x)
    for target in ("tosa-fp", "vulkan"):
        artifact = tosaic.compile(program, target=target)
        artifact.save(tmp_path / "m.pte")
        got = np.asarray(tosaic.load(tmp_path / "m.pte").run(x))
        assert np.abs(got - program.module()(x).detach().numpy()).max() <= 1e-5


@pytest.mark.parametrize("name", ("filtered", "mel"))
def test_integers(name):
    """Behind the reader they are products, which integers compute as any other."""
    f, x = EVERYWHERE[name]
    program = exported(f, x)
    samples = [noise(*x.shape, seed=seed) for seed in range(4)]
    got = np.asarray(tosaic.compile(program, target="tosa-int", calibration=samples).run(x))
    wanted = program.module()(x).detach().numpy()
    assert got.shape == wanted.shape and np.isfinite(got).all()
    assert 10 * np.log10((wanted**2).sum() / ((wanted - got) ** 2).sum()) > 30


def refusal(f, *inputs, **options):
    with pytest.raises(tosaic.Error) as refused:
        tosaic.compile(exported(f, *inputs), **{"target": "tosa-fp", **options})
    return refused.value


def test_refused():
    """What a program takes and returns is real, and an operator without a form on pairs is named."""
    x = noise(2, 8)
    for f, inputs in ((lambda x: torch.fft.rfft(x), (x,)), (lambda x: x.abs(), (torch.fft.rfft(x),))):
        why = refusal(f, *inputs)
        assert why.code == "pt2.unsupported-dtype" and "view_as_real" in why.help
    why = refusal(lambda x: torch.fft.rfft(x).asinh().abs(), x)
    assert why.code == "model.complex" and "aten.asinh.default" in str(why) and "view_as_real" in why.help
    assert ".py:" in str(why), "the line that calls it"
    assert refusal(lambda x: real(torch.fft.rfft(x.double())), x).code == "pt2.unsupported-dtype"
    assert refusal(lambda x: real(torch.fft.rfft(x)), noise(1, 100_000)).code == "aten.fft.length"
