# SPDX-License-Identifier: Apache-2.0
"""Average pools with padding that counts or does not, windows that hang over, divisors of one's own: as eager PyTorch
computes them in floats; in int8, natively and quantised with PT2E, within their quantised values' rounding."""
import itertools

import pytest
import tosaic
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")
WINDOWS = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 1)]  # kernel, stride, padding
SIZES = {1: (9,), 2: (8, 7), 3: (5, 6, 7)}


class Pools(nn.Module):
    """All combinations of one dimensionality, of one input."""

    def __init__(self, dims, divisor):
        super().__init__()
        pool = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[dims]
        given = {} if divisor is None else {"divisor_override": divisor}
        self.calls = [lambda x, w=w, c=c, p=p: pool(x, *w, ceil_mode=c, count_include_pad=p, **given)
                      for w, c, p in itertools.product(WINDOWS, (False, True), (False, True))]

    def forward(self, x):
        return [call(x) for call in self.calls]


CASES = [(1, None), *itertools.product((2, 3), (None, 1, 5, -2))]
# A sum of 27 has the input's quantised values, 27 times as far apart: so coarse that a bound would say nothing.
IN_CODES = [case for case in CASES if case != (3, 1)]


def program(dims, divisor):
    torch.manual_seed(4)
    x = torch.randn(1, 3, *SIZES[dims])
    return Pools(dims, divisor), x


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
@pytest.mark.parametrize("dims, divisor", CASES)
def test_in_floats(dims, divisor, target):
    module, x = program(dims, divisor)
    artifact = tosaic.compile(torch.export.export(module, (x,)), target=target, require_full_delegation=True)
    for wanted, got in zip(module(x), artifact.run(x), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def code(*tensors):
    """The distance of int8 quantised values that hold all of these."""
    low = min(0.0, *(t.min().item() for t in tensors))
    high = max(0.0, *(t.max().item() for t in tensors))
    return (high - low) / 255


def near(module, x, results, dims, divisor):
    """What a mean of quantised values is off by, times how much the divisor magnifies it; a volume's mean is rounded
    twice."""
    for (kernel, *_), wanted, got in zip([w for w in WINDOWS for _ in range(4)], module(x), results, strict=True):
        larger = 1 if divisor is None else kernel**dims / abs(divisor)
        allowed = code(x, wanted / larger) * larger * (3 if dims == 3 else 2) + code(wanted)
        assert got.shape == wanted.shape
        assert (got - wanted).abs().max() <= allowed, (kernel, divisor)


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("dims, divisor", IN_CODES)
def test_in_int8(dims, divisor, target):
    module, x = program(dims, divisor)
    artifact = tosaic.compile(torch.export.export(module, (x,)), target=target, calibration=[(x,)],
                              require_full_delegation=True)
    near(module, x, artifact.run(x), dims, divisor)


@pytest.mark.parametrize("dims, divisor", IN_CODES)
def test_quantised_with_pt2e(dims, divisor):
    from tosaic.executorch import TOSAQuantizer, TosaCompileSpec, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    module, x = program(dims, divisor)
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT"))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(module, (x,)).module(), quantizer)
    prepared(x)
    quantised = torch.export.export(convert_pt2e(prepared), (x,))
    near(module, x, tosaic.compile(quantised, target="tosa-int").run(x), dims, divisor)


LARGE = {
    "all": (lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: x.mean((2, 3), keepdim=True)),
    "window of all": (lambda x: F.avg_pool2d(x, (48, 64)), lambda x: x.mean((2, 3), keepdim=True)),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x, 4), lambda x: x.view(-1, 4, 4, 12, 4, 16).mean((3, 5))),
    "tiles": (lambda x: F.avg_pool2d(x, 16), lambda x: x.view(-1, 4, 3, 16, 4, 16).mean((3, 5))),
    "small strides": (lambda x: F.avg_pool2d(x, 8, 2), lambda x: x.unfold(2, 8, 2).unfold(3, 8, 2).mean((4, 5))),
    "padded": (lambda x: F.avg_pool2d(x, 9, 2, 4), lambda x: F.pad(x, (4, 4, 4, 4)).unfold(2, 9, 2).unfold(3, 9, 2).mean((4, 5))),
}


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128", "ethos-u85-256", "vulkan"])
@pytest.mark.parametrize("shift", [0, -2.5])  # signed maps; sparse ones
@pytest.mark.parametrize("name", LARGE)
def test_large_windows_have_a_range_of_their_own(name, shift, target):
    """What is averaged over many elements is much smaller than the largest of them."""
    pool, mean = LARGE[name]

    class Pool(nn.Module):
        def forward(self, x):
            return pool(F.relu(x + shift) if shift else x)

    torch.manual_seed(0)
    samples = [torch.randn(1, 4, 48, 64) for _ in range(16)]
    artifact = tosaic.compile(Pool(), samples[0], target, quantize="int8", calibration=samples, require_full_delegation=True)
    signal = noise = 0.0
    for _ in range(4):
        x = torch.randn(1, 4, 48, 64)
        averaged = F.relu(x + shift) if shift else x
        wanted, got = mean(averaged), artifact.run(x)
        torch.testing.assert_close(Pool()(x), wanted, rtol=1e-4, atol=1e-5)
        signal, noise = signal + wanted.square().sum(), noise + (got - wanted).square().sum()
    found = 10 * torch.log10(signal / noise)
    assert found > (20 if shift else 28), found  # with the quantised values of the map: 1 to 15
