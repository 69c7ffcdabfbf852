# SPDX-License-Identifier: Apache-2.0
"""Integers next to quantised floats, and functions of two tensors (prod, pow, atan2, scatter_reduce, grid_sample): all of it in
one delegate, with right numbers. And logarithms of quiet signals in 16 bits."""
import warnings

import pytest
import tosaic
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")
SCHEMES = ["int8", "int16x8"]


class Of(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, *inputs):
        return self.program(*inputs)


def decibels(expected, found):
    expected, found = expected.double(), found.double()
    return float(10 * torch.log10(expected.square().sum() / (expected - found).square().sum().clamp(min=1e-30)))


def quantised(program, make, scheme, **options):
    """(expected, found) of a sample, after the checks that all of the program is in one delegate."""
    torch.manual_seed(0)
    samples = [make() for _ in range(8)]
    exported = torch.export.export(Of(program), samples[0])
    explained = tosaic.explain(exported, target="tosa-int")
    assert [node.op for node in explained.nodes if not node.taken] == []
    artifact = tosaic.compile(exported, target="tosa-int", calibration=samples, quantize=scheme, **options)
    return program(*samples[0]), artifact.run(*samples[0])


def floats(*shape):
    return lambda: (torch.randn(*shape),)


def beside_counts():
    return torch.randn(4, 7), torch.randint(0, 5, (4, 7)).int()


def places():
    return torch.randn(4, 9), torch.randint(0, 5, (4, 9))


def gathered(how, **options):
    """Elements that go to places: some get several, some none."""
    return lambda x, i: torch.linspace(-1, 1, 20).view(4, 5).scatter_reduce(1, i, x, how, **options)


def positions():
    return torch.randn(2, 3, 8, 9), torch.rand(2, 6, 7, 2) * 2.6 - 1.3


def sampled(mode, padding, corners=False):
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, corners)


EXPONENTS = torch.tensor([0.5, 1, 2, 3, -1, 1.5, 0])
WHOLE = torch.tensor([3.0, 2, 1, 3, 2, 1, 1])
PROGRAMS = {  # program, inputs, least dB of the two schemes
    "numbers of places": (lambda v: torch.arange(1, 8) * v, floats(3, 7), 35, 75),
    "counted": (lambda x: x + torch.arange(7) // 2, floats(3, 7), 35, 75),
    "an input of integers": (lambda x, n: x * n, beside_counts, 35, 75),
    "added": (lambda x, n: x + n, beside_counts, 35, 75),
    "chosen": (lambda x, n: torch.where(n > 2, x, n), beside_counts, 35, 75),
    "the place of the largest": (lambda x: x.argmax(-1) * x.sum(-1), floats(4, 7), 30, 70),
    "product": (lambda x: x.prod(-1), floats(50, 4), 28, 65),
    "product of many": (lambda x: x.sigmoid().mul(2).prod(0), floats(19, 5), 22, 55),
    "powers": (lambda x: x ** EXPONENTS, lambda: (torch.rand(4, 7) + 0.3,), 35, 70),
    "whole powers of negative numbers": (lambda x: x ** WHOLE, floats(5, 7), 30, 55),
    "one power": (lambda x: x ** torch.full((7,), 0.96), lambda: (torch.rand(4, 7) * 3,), 35, 75),
    "powers of numbers": (lambda x: torch.tensor([1.0, 2, 3, 0.5]) ** x, floats(6, 4), 28, 65),
    "sinc": (torch.sinc, floats(40, 7), 30, 60),
    "largest at a place": (gathered("amax"), places, 35, 75),
    "smallest at a place, alone": (gathered("amin", include_self=False), places, 33, 75),
    "sum at a place": (gathered("sum"), places, 33, 75),
    "mean at a place": (gathered("mean"), places, 33, 70),
    "mean at a place, alone": (gathered("mean", include_self=False), places, 25, 45),
    "product at a place": (gathered("prod"), places, 18, 55),
    "bilinear": (sampled("bilinear", "zeros"), positions, 27, 58),
    "bilinear at the border": (sampled("bilinear", "border", True), positions, 27, 58),
    "bilinear in a mirror": (sampled("bilinear", "reflection"), positions, 27, 58),
    "bicubic": (sampled("bicubic", "zeros", True), positions, 25, 55),
    "bicubic at the border": (sampled("bicubic", "border"), positions, 25, 55),
    "bicubic in a mirror": (sampled("bicubic", "reflection"), positions, 25, 55),
    "angle": (torch.atan2, lambda: (torch.randn(40, 7), torch.randn(40, 7)), 35, 65),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_is_taken_with_right_numbers(name, scheme):
    program, make, *least = PROGRAMS[name]
    assert decibels(*quantised(program, make, scheme)) > least[SCHEMES.index(scheme)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["largest at a place", "mean at a place", "bilinear", "bicubic at the border"])
def test_equal_on_all_devices(name, scheme):
    program, make, *_ = PROGRAMS[name]
    torch.manual_seed(0)
    if make is positions:  # an NPU has one batch
        samples = [tuple(t[:1] for t in make()) for _ in range(4)]
    else:
        samples = [make() for _ in range(4)]
    exported = torch.export.export(Of(program), samples[0])
    on_cpu, *others = [tosaic.compile(exported, target=target, calibration=samples, quantize=scheme).run(*samples[0])
                       for target in ("tosa-int", "vulkan", "ethos-u85-256")]
    assert all(torch.equal(other, on_cpu) for other in others)


def test_the_nearest_pixel_is_found_in_floats():
    """A position of 8 bits often lies on the other side of a pixel's edge."""
    torch.manual_seed(0)
    samples = [positions() for _ in range(4)]
    module = Of(lambda x, grid: F.grid_sample(x * 2, grid, "nearest", align_corners=False).relu())
    exported = torch.export.export(module, samples[0])
    explained = tosaic.explain(exported, target="tosa-int")
    assert [str(node.op) for node in explained.nodes if not node.taken] == ["aten.grid_sampler.default"]
    artifact = tosaic.compile(exported, target="tosa-int", calibration=samples)
    assert decibels(module(*samples[0]), artifact.run(*samples[0])) > 35


def test_positions_in_a_large_image_that_are_an_input_stay_floats():
    torch.manual_seed(0)
    rows = torch.linspace(-1, 1, 90)
    image = torch.sin(rows[:, None] * 40 + rows[None] * 30)[None, None]
    samples = [(image, torch.rand(1, 6, 7, 2) * 2 - 1) for _ in range(4)]
    module = Of(lambda x, grid: F.grid_sample(x * 2, grid, align_corners=False).relu())
    artifact = tosaic.compile(torch.export.export(module, samples[0]), target="tosa-int", calibration=samples)
    assert decibels(module(*samples[0]), artifact.run(*samples[0])) > 38


def test_angles_on_the_axes():
    y, x = torch.tensor([[0, 0, 0, 2, -2.0]]), torch.tensor([[0, 1, -1, 0, 0.0]])
    artifact = tosaic.compile(Of(torch.atan2), (y, x), "tosa-int", calibration=[(y, x), (x, y)])
    torch.testing.assert_close(artifact.run(y, x), torch.atan2(y, x), atol=0.03, rtol=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_how_many_rows_each_expert_gets(scheme):
    """As mixtures of experts of transformers count them: through floats, between integers alone."""
    def program(x):
        chosen = x.argmax(-1)
        counts = torch.histc(chosen.float(), bins=7, min=0, max=6)
        return torch.cumsum(counts, 0, dtype=torch.int32), x.relu()

    (ends, _), (found, _) = quantised(program, floats(40, 7), scheme)
    assert found.tolist() == ends.tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_warning_of_what_was_written_for_norms(scheme):
    def program(x):
        return x / x.abs().mean(-1, keepdim=True).clamp(min=1e-5)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        quantised(program, lambda: (torch.randn(4, 7) * torch.tensor([[1], [0.2], [0], [2]]),), scheme)
    assert not [warning for warning in said if "unlike-ranges" in str(warning.message)]


@pytest.mark.parametrize("scheme, observer, least", [("int8", "histogram", 40), ("int16x8", "histogram", 45),
                                                     ("int16x8", "minmax", 45)])
def test_a_logarithm_of_quiet_and_silent_bands(scheme, observer, least):
    """Of bands with filters of unlike size, which have scales of their own in 8 bits."""
    filters = torch.rand(33, 10, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 0, 10)
    filters[:, 4] = 0

    def program(x):
        frames = torch.fft.rfft(x.unfold(-1, 64, 32)).abs().square()
        return (frames @ filters + 1e-6).log()

    assert decibels(*quantised(program, floats(1, 400), scheme, observer=observer)) > least


def power(x):
    return x[:, :8] * x[:, :8] + x[:, 8:] * x[:, 8:]


@pytest.mark.parametrize("program, least", [
    (lambda x: (x * x + 1e-6).log(), 50), (lambda x: (x.abs() ** 2 + 1e-6).log2(), 50),
    (lambda x: 10 * (x * x).clamp(min=1e-8).log10(), 40), (lambda x: (power(x) + 1e-6).log(), 50),
    (lambda x: power(x).sqrt().clamp(min=1e-5).log(), 45), (lambda x: (x.square().mean(-1) + 1e-9).log(), 50)])
def test_a_logarithm_of_the_power_of_quiet_signals(program, least):
    """Noise whose level varies by 40 dB: of its squares, 16 bits hold the loudest."""
    def signal():
        return (torch.randn(1, 16, 50) * 10 ** (-2 * torch.rand(1)),)
    assert decibels(*quantised(program, signal, "int16x8")) > least


def test_a_magnitude_of_quiet_signals():
    """The root of a sum of squares, as spectra have it: squares of 16 bits hold the loudest."""
    def signal():
        return (torch.randn(1, 16, 50) * 10 ** (-2 * torch.rand(1)),)
    assert decibels(*quantised(lambda x: power(x).sqrt().sqrt(), signal, "int16x8")) > 50


def sectors(hues):
    """Colours around the circle, as torchvision and kornia compute them: one formula for each of six sectors."""
    h, v = hues[:, :1] * 6, hues[:, 1:]
    sector = h.floor()
    rest = h - sector
    near = torch.arange(6, dtype=torch.int32) == sector.to(torch.int32)
    return (near * torch.cat([v, v * (1 - rest), 0 * v, 0 * v, v * rest, v], 1)).sum(1)


@pytest.mark.parametrize("scheme, least", [("int8", 32), ("int16x8", 70)])
def test_sectors_of_a_circle_are_whole_numbers(scheme, least):
    """3 is no 2.996, which is 2 as an integer."""
    torch.manual_seed(0)
    samples = [(torch.rand(400, 2),) for _ in range(8)]
    artifact = tosaic.compile(torch.export.export(Of(sectors), samples[0]), target="tosa-int", calibration=samples,
                              quantize=scheme)
    assert decibels(sectors(*samples[0]), artifact.run(*samples[0])) > least
