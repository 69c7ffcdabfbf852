# SPDX-License-Identifier: Apache-2.0
"""Scales chosen from samples: half-precision floats, operands of unlike ranges, constants in products, scales chosen at
run time."""
import re
import subprocess
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def seeded():
    """The same samples whatever ran before."""
    torch.manual_seed(6)


def decibels(found, expected):
    error = np.square(found.astype(np.float64) - expected.astype(np.float64)).sum()
    return 10 * np.log10(np.square(expected.astype(np.float64)).sum() / max(error, 1e-30))


class Built:
    """A module, exported and compiled from samples; `said` is what compile printed, errors and warnings first."""

    def __init__(self, module, samples, folder, tosaic, *options, target="tosa-int", calibrate=True):
        self.module, self.folder = module.eval(), folder
        program = torch.export.export(self.module, tuple(s[0] for s in samples))
        torch.export.save(program, folder / "m.pt2")
        names = program.graph_signature.user_inputs
        np.savez(folder / "samples.npz", **{n: s.numpy() for n, s in zip(names, samples)})
        command = [tosaic, "compile", folder / "m.pt2", "--target", target, "-o", folder / "m.pte", *options]
        command += ["--calibrate", folder / "samples.npz"] if calibrate else []
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        self.status, self.said = done.returncode, done.stderr + done.stdout

    def check(self, inputs, tool, least):
        """Every output at least `least` dB near PyTorch's."""
        assert self.status == 0, self.said
        expected = self.module(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = tool.run(self.folder / "m.pte", [x.numpy() for x in inputs], self.folder)
        for f, e in zip(found, expected, strict=True):
            e = e.detach()
            assert f.dtype == e.numpy().dtype
            assert decibels(f, e.float().numpy()) > least, decibels(f, e.float().numpy())
        return found

    @property
    def delegated(self):
        part, whole = re.search(r"delegated +(\d+) of (\d+)", self.said).groups()
        return int(part), int(whole)


def net():
    torch.manual_seed(7)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.SiLU(), nn.Flatten(), nn.Linear(128, 10))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_decomposed_linear_layers_keep_a_scale_per_channel(tosaic, tmp_path, dtype):
    module = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4, bias=False)).to(dtype)
    program = torch.export.export(module, (torch.randn(2, 8).to(dtype),)).run_decompositions()
    torch.export.save(program, tmp_path / "m.pt2")
    plan = subprocess.run([tosaic, "explain", tmp_path / "m.pt2", "--plan"], capture_output=True, text=True, check=True).stdout
    assert plan.count("i8 symmetric per dim 0 in aten.linear.default") == 2, plan


def test_half_floats_are_quantised(tosaic, tool, tmp_path):
    samples = torch.randn(8, 1, 3, 8, 8).half()
    built = Built(net().half(), [samples], tmp_path, tosaic)
    assert built.delegated[0] == built.delegated[1], built.said
    built.check((samples[1],), tool, 30)


def test_bfloat16_is_quantised_from_samples_in_f32(tosaic, tool, tmp_path):
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net().bfloat16()

        def forward(self, x):
            return self.net(x.bfloat16()).float()

    samples = torch.randn(8, 1, 3, 8, 8)
    built = Built(Cast(), [samples], tmp_path, tosaic)
    assert built.delegated[0] == built.delegated[1], built.said
    built.check((samples[1],), tool, 25)
    program = torch.export.export(net().bfloat16(), (samples[0].bfloat16(),))
    torch.export.save(program, tmp_path / "m.pt2")
    np.savez(tmp_path / "samples.npz", input_0=samples.numpy())
    said = tool("compile", tmp_path / "m.pt2", "--target", "tosa-int", "--calibrate", tmp_path / "samples.npz", "-o",
                tmp_path / "m.pte")
    assert re.search(r"delegated +(\d+) of \1 ", said), said


def test_nothing_delegated_is_said(tosaic, tmp_path):
    class Sorted(nn.Module):
        def forward(self, x):
            return torch.sort(x, descending=True)[0]

    samples = torch.randn(4, 3, 9)
    quiet = Built(Sorted(), [samples], tmp_path, tosaic, target="tosa-fp", calibrate=False)
    assert quiet.status == 0 and "warning[target.nothing-delegated]" in quiet.said
    asked = Built(Sorted(), [samples], tmp_path, tosaic, target="tosa-fp")
    assert asked.status == 1 and "error[target.nothing-delegated]" in asked.said and "explain" in asked.said


def test_an_extension_is_named_with_its_option(tosaic, tmp_path):
    program = torch.export.export(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).bfloat16(), (torch.randn(3, 4).bfloat16(),))
    torch.export.save(program, tmp_path / "m.pt2")
    command = [tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte"]
    said = subprocess.run([*map(str, command), "--tosa-spec", "TOSA-1.0+FP"], capture_output=True, text=True)
    option = re.search(r"--tosa-spec (\S+)", said.stderr + said.stdout)
    assert option, said
    again = subprocess.run([*map(str, command), "--tosa-spec", option.group(1)], capture_output=True, text=True)
    assert again.returncode == 0 and "delegated  2 of 2" in again.stdout, again


class Head(nn.Module):
    """Boxes in pixels and scores below 1, as detectors concatenate them."""

    def __init__(self, end=None):
        super().__init__()
        torch.manual_seed(3)
        self.boxes, self.scores, self.end = nn.Linear(8, 4), nn.Linear(8, 6), end

    def forward(self, x):
        y = torch.cat([self.boxes(x) * 600, torch.sigmoid(self.scores(x))], dim=-1)
        return y if self.end is None else self.end(y)


def test_unlike_pieces_leave_with_their_own_scales(tosaic, tool, tmp_path):
    samples = torch.randn(16, 5, 8)
    built = Built(Head(), [samples], tmp_path, tosaic)
    assert "warning[quantise.unlike-ranges]" in built.said and "torch.cat([self.boxes(x) * 600" in built.said
    found, = built.check((samples[2],), tool, 30)
    expected = built.module(samples[2]).detach().numpy()
    assert decibels(found[:, 4:], expected[:, 4:]) > 35
    moved = Built(Head(lambda y: y.transpose(0, 1)), [samples], tmp_path, tosaic)
    found, = moved.check((samples[2],), tool, 30)
    assert decibels(found[4:], expected.T[4:]) > 35


def test_unlike_pieces_inside_take_16_bits(tosaic, tool, tmp_path):
    samples = torch.randn(16, 5, 8)
    scale = torch.tensor([1 / 600.0] * 4 + [1.0] * 6)
    built = Built(Head(lambda y: torch.tanh(y * scale)), [samples], tmp_path, tosaic)
    assert "warning[quantise.unlike-ranges]" in built.said and "16 bits" in built.said
    assert built.delegated[0] == built.delegated[1]
    found, = built.check((samples[2],), tool, 25)
    assert decibels(found[:, 4:], built.module(samples[2]).detach().numpy()[:, 4:]) > 25


def assigned(y, z):
    y = y.clone()
    y[:, 2:4] = z[:, 2:4]
    return y


def overwritten(y, z):
    y = y.clone()
    y[:] = z
    return y


# What the call makes of a tensor up to 1 and one of 100 to 400; does the result hold both?
CHOICES = {"where": (lambda y, z: torch.where(z < 0, y, z), True),
           "maximum": (lambda y, z: torch.maximum(y, z), True),
           "slice_scatter": (lambda y, z: assigned(y, z), True),
           "minimum": (lambda y, z: torch.minimum(y, z.abs()), False),
           "copy": (lambda y, z: overwritten(z, y), False)}


class Choice(nn.Module):
    def __init__(self, choose):
        super().__init__()
        torch.manual_seed(4)
        self.small, self.large, self.choose = nn.Linear(8, 8), nn.Linear(8, 8), choose

    def forward(self, x, sign):
        y = self.choose(torch.tanh(self.small(x)), sign * (100 + 300 * torch.sigmoid(self.large(x))))
        return y.clone(), y.abs()


@pytest.mark.parametrize("name", CHOICES)
def test_unlike_tensors_that_are_chosen_from_keep_their_scales(name, tosaic, tool, tmp_path):
    choose, both = CHOICES[name]
    samples = [torch.randn(16, 4, 8), torch.randn(16, 4, 8).sign()]
    built = Built(Choice(choose), samples, tmp_path, tosaic)
    assert built.delegated[0] == built.delegated[1], built.said
    assert ("warning[quantise.unlike-ranges]" in built.said) == both, built.said
    found = built.check([s[2] for s in samples], tool, 30)[0]
    expected = built.module(*(s[2] for s in samples))[0].detach().numpy()
    small = np.abs(expected) <= 1
    assert decibels(found[small], expected[small]) > 30


EVEN = torch.arange(8) % 2 == 0
# A scalar constant of the program among the elements of a tensor up to 1; does the result hold both?
NUMBERS = {"where": (lambda y: torch.where(EVEN, y, 100.0), True),
           "where_tensor": (lambda y: torch.where(EVEN, torch.tensor([100.0]), y), True),
           "masked_fill": (lambda y: y.masked_fill(EVEN, -77.0), True),
           "pad": (lambda y: F.pad(y, (1, 1), value=100.0), True),
           "stack": (lambda y: torch.stack([y, torch.full((4, 8), 100.0)]), True),
           "scatter": (lambda y: y.scatter(1, torch.zeros(4, 2, dtype=torch.long), 100.0), True),
           "minimum": (lambda y: torch.minimum(y.abs() * 400, torch.full((8,), 0.5)), False),
           "maximum": (lambda y: torch.maximum(y, torch.full((8,), 0.5)), False),
           "softmax": (lambda y: torch.softmax(y.masked_fill(EVEN, -1e9), -1), False)}


class Number(nn.Module):
    def __init__(self, put, end):
        super().__init__()
        torch.manual_seed(4)
        self.small, self.put, self.end = nn.Linear(8, 8), put, end

    def forward(self, x):
        return self.end(self.put(torch.tanh(self.small(x))))


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_among_elements_leave_them_their_codes(name, leaves, tosaic, tool, tmp_path):
    put, both = NUMBERS[name]
    samples = torch.randn(16, 4, 8)
    module = Number(put, (lambda y: y.clone()) if leaves else (lambda y: F.linear(y, torch.eye(y.shape[-1]))))
    built = Built(module, [samples], tmp_path, tosaic)
    assert ("warning[quantise.unlike-ranges]" in built.said) == both, built.said
    found, = built.check((samples[2],), tool, 30)
    if leaves:
        expected = built.module(samples[2]).detach().numpy()
        small = np.abs(expected) <= 1
        assert decibels(found[small], expected[small]) > 30


NOT_FINITE = {"constant": (lambda x: x + float("nan"), "warning"),
              "division": (lambda x: x / torch.tensor([0.0] + [1.0] * 7), "warning"),
              "logarithm": (lambda x: torch.log(x) * 0.5, "warning"),
              "mask": (lambda x: x.masked_fill(x > 0, float("-inf")) * 0.5, "warning"),
              "replaced": (lambda x: torch.where(x > 0, torch.rsqrt(torch.relu(x)), x), "note"),
              "softmax": (lambda x: torch.softmax(x.masked_fill(x > 0.5, float("-inf")), -1), None)}


@pytest.mark.parametrize("name", NOT_FINITE)
def test_results_that_are_no_numbers_are_said(name, tosaic, tmp_path):
    function, kind = NOT_FINITE[name]

    class Model(nn.Module):
        def forward(self, x):
            return function(x) + 1

    samples = torch.rand(8, 4, 8) * 2 - 1
    samples[0, 0, 0] = 0  # rsqrt's pole
    built = Built(Model(), [samples], tmp_path, tosaic)
    assert built.status == 0, built.said
    found = re.findall(r"(\w+)\[calibrate.not-finite\]", built.said)
    assert found == ([kind] if kind else []), built.said


def test_what_cannot_be_run_does_not_hide_pieces(tosaic, tmp_path):
    class Unknown(nn.Module):
        def forward(self, x):
            return torch.tanh(torch.cat([x, 2 * x])), torch.nonzero(x)

    built = Built(Unknown(), [torch.randn(4, 3, 8)], tmp_path, tosaic)
    assert "warning[quantise.unobserved]" in built.said and "tosa" in built.said, built.said


def test_like_pieces_share_a_scale(tosaic, tool, tmp_path):
    class Alike(nn.Module):
        def forward(self, x):
            return torch.cat([x, torch.tanh(x), torch.zeros(5, 2)], dim=-1)

    samples = torch.randn(8, 5, 8)
    built = Built(Alike(), [samples], tmp_path, tosaic)
    assert "unlike-ranges" not in built.said and built.delegated[0] == built.delegated[1]
    built.check((samples[0],), tool, 30)


@pytest.mark.parametrize("channels, larger, part", [
    (8, 1e6, lambda y: y[:, :4]),
    (8, 1e6, lambda y: y.reshape(2, 2, 4)[:, 0]),
    (16, 1e5, lambda y: y[:, :3] + y[:, 4:7]),
    (16, 1e5, lambda y: (lambda z: z[:, :3] + z[:, 4:7])(torch.tanh(y) * y)),
], ids=["slice", "select", "slices", "slices of a product"])
def test_what_slices_leave_out_does_not_count(channels, larger, part, tosaic, tool, tmp_path):
    class Cropped(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.linear = nn.Linear(8, channels)
            self.linear.weight.data[channels // 2:] *= larger

        def forward(self, x):
            return part(self.linear(x))

    samples = torch.randn(9, 2, 8)
    built = Built(Cropped(), [samples], tmp_path, tosaic)
    built.check((samples[0],), tool, 30)


def test_ends_that_an_inverse_stft_cuts_off_do_not_count(tosaic, tool, tmp_path):
    class Inverse(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.frames = nn.ConvTranspose1d(8, 1, 64, stride=16, bias=False)
            window = torch.hann_window(64) ** 2
            envelope = nn.functional.conv_transpose1d(torch.ones(1, 1, 32), window[None, None], stride=16)
            self.register_buffer("per_envelope", 1 / envelope.clamp_min(1e-8))

        def forward(self, x):
            return (self.frames(x) * self.per_envelope)[..., 32:-32]

    samples = torch.randn(9, 1, 8, 32)
    built = Built(Inverse(), [samples], tmp_path, tosaic)
    built.check((samples[0],), tool, 30)


class Masked(nn.Module):
    """Attention scores next to a sink that no mask covers, as in gpt-oss."""

    def __init__(self, mask):
        super().__init__()
        torch.manual_seed(4)
        self.q, self.k, self.sink, self.mask = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1), mask

    def forward(self, x):
        return torch.cat([self.mask(self.q(x) @ self.k(x).T), self.sink(x)], -1).softmax(-1)


LATER = torch.ones(5, 5).triu(1)
LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize("mask", [lambda scores: scores + LOWEST * LATER, lambda scores: scores.masked_fill(LATER > 0, -1e9)],
                         ids=["added", "filled"])
def test_masked_pieces_share_a_scale_with_others(mask, tosaic, tool, tmp_path):
    samples = torch.randn(9, 5, 8)
    built = Built(Masked(mask), [samples], tmp_path, tosaic)
    assert "unlike-ranges" not in built.said, built.said
    built.check((samples[0],), tool, 25)


@pytest.mark.parametrize("scheme, floor", [("int8", 30), ("int16x8", 70)])
@pytest.mark.parametrize("shape", [(6, 4), (2, 6, 4)])
def test_constants_of_a_product(shape, scheme, floor, tosaic, tool, tmp_path):
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.queries = nn.Parameter(torch.randn(shape))

        def forward(self, x):
            return self.queries @ x, x.transpose(1, 2) @ self.queries.mT

    samples = torch.randn(8, 2, 4, 5)
    built = Built(Product(), [samples], tmp_path, tosaic, "--quantize", scheme)
    assert built.delegated[0] == built.delegated[1], built.said
    built.check((samples[3],), tool, floor)


def test_scales_chosen_at_run_time_are_calibrated(tosaic, tool, tmp_path):
    from test_pt2e import convert
    torch.manual_seed(2)
    example = (torch.randn(4, 16),)
    converted = convert(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)), example, "xnnpack-dynamic")
    program = torch.export.export(converted, example)
    torch.export.save(program, tmp_path / "m.pt2")
    np.savez(tmp_path / "samples.npz", **{program.graph_signature.user_inputs[0]: torch.randn(8, 4, 16).numpy()})
    for target, options in (("tosa-int", ["--calibrate", tmp_path / "samples.npz"]), ("tosa-fp", [])):
        said = tool("compile", tmp_path / "m.pt2", "--target", target, "-o", tmp_path / "m.pte", *options)
        assert re.search(r"delegated +(\d+) of \1 ", said), said
        found, = tool.run(tmp_path / "m.pte", [example[0].numpy()], tmp_path)
        assert decibels(found, converted(*example).detach().numpy()) > 30


def test_booleans_stay_booleans(tosaic, tool, tmp_path):
    class Masks(nn.Module):
        def forward(self, x):
            m = x > 0
            return m & True, m | False, m ^ True, (m & 1) + 2

    samples = torch.randint(-3, 3, (4, 3, 5)) + 0.5
    for target in ("tosa-fp", "tosa-int"):
        built = Built(Masks(), [samples], tmp_path, tosaic, target=target, calibrate=target == "tosa-int")
        found = tool.run(tmp_path / "m.pte", [samples[0].numpy()], tmp_path)
        for f, e in zip(found[:3], built.module(samples[0])[:3], strict=True):
            np.testing.assert_array_equal(f, e.numpy())


def test_sums_as_integers_take_the_real_values(tosaic, tool, tmp_path):
    """As casts do; the counts of transformers' mixtures of experts are such sums."""
    class Sums(nn.Module):
        def forward(self, x):
            y = x * 2
            return y.cumsum(0, dtype=torch.int32), y.sum(1, dtype=torch.int64), y.mean(0)

    samples = torch.randint(-5, 5, (8, 3, 4), generator=torch.Generator().manual_seed(3)) + 0.25  # truncated as by PyTorch
    built = Built(Sums(), [samples], tmp_path, tosaic)
    assert built.status == 0, built.said
    built.check((samples[0],), tool, 30)


class NormBehindActivation(nn.Module):
    """Layers of channels that are `unlike` times as large as others, each normalised after its activation as in training."""

    def __init__(self, unlike):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.BatchNorm1d(64, momentum=None),
                                    nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64, momentum=None), nn.Linear(64, 10))
        with torch.no_grad():
            for layer in (self.layers[0], self.layers[3]):
                sizes = unlike ** (torch.rand(64) - 0.5)
                layer.weight.mul_(sizes[:, None])
                layer.bias.mul_(sizes)
            self.train()
            for _ in range(4):
                self(torch.randn(256, 32))

    def forward(self, x):
        return self.layers(x)


def test_norms_after_activations_are_folded_into_the_layers_after_them(tool, tosaic, tmp_path):
    built = Built(NormBehindActivation(unlike=3), (torch.randn(64, 1, 32),), tmp_path, tosaic)
    assert built.delegated == (5, 5)
    built.check((torch.randn(1, 32),), tool, 22)


@pytest.mark.parametrize("unlike, options", [(100, ()), (3, ("--quantize", "int16x8"))])
def test_norms_stay_where_weights_of_8_bits_would_lose_more(tosaic, tmp_path, unlike, options):
    built = Built(NormBehindActivation(unlike), (torch.randn(64, 1, 32),), tmp_path, tosaic, *options)
    assert built.delegated[0] > 5
