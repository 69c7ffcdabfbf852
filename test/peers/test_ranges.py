# SPDX-License-Identifier: Apache-2.0
"""Ranges that ordinary samples do not have: attention masks in all the forms that people write, constants that dwarf
the tensors next to them, functions of many periods, inputs beyond the samples. One model per family, one output per
form; PyTorch is the oracle."""
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

LEAST = torch.finfo(torch.float32).min
ROWS, WIDTH = 16, 32


def decibels(wanted, found):
    error = np.square(wanted.astype(np.float64) - found).sum()
    return 10 * math.log10(np.square(wanted.astype(np.float64)).sum() / error) if error else math.inf


def compiled_and_run(tool, folder, net, samples, inputs, *options, decomposed=False):
    """What PyTorch and the compiled program give for `inputs`, and what compile said."""
    program = torch.export.export(net.eval(), samples[0])
    if decomposed:
        program = program.run_decompositions()
    torch.export.save(program, folder / "net.pt2")
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    np.savez(folder / "samples.npz", **{name: np.stack([sample[i].numpy() for sample in samples])
                                        for i, name in enumerate(names)})
    said = tool("compile", folder / "net.pt2", "--calibrate", folder / "samples.npz", "-o", folder / "net.pte", *options)
    with torch.no_grad():
        wanted = [y.numpy() for y in net(*inputs)]
    return wanted, tool.run(folder / "net.pte", [x.numpy() for x in inputs], folder), said


class Attentions(nn.Module):
    """The same attention with the same two masks (the future; the end of the keys), said in different ways."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.project = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        with torch.no_grad():
            for layer in self.project:
                layer.weight.mul_(3)
        self.register_buffer("past", torch.ones(ROWS, ROWS).tril().bool())
        self.register_buffer("bias", torch.randn(ROWS, ROWS))

    def constant_masks(self, scores):
        past = self.past
        additive = lambda value: torch.zeros(ROWS, ROWS).masked_fill(~past, value)  # noqa: E731
        place = torch.arange(ROWS)
        yield from (scores + additive(value) for value in (-1e4, -1e9, LEAST, -math.inf))
        yield torch.where(past, scores, torch.tensor(LEAST))
        yield scores.masked_fill(~past, -1e9)
        yield scores.masked_fill(~past, -math.inf)
        yield scores + torch.full((ROWS, ROWS), -math.inf).triu(1)
        yield scores + torch.where(place[None] > place[:, None], LEAST, 0.0)
        yield torch.maximum(scores + additive(LEAST), torch.tensor(LEAST))
        yield scores - 1e9 * (~past).float()

    def input_masks(self, scores, additive, shown, ones):
        yield scores + additive
        yield torch.where(shown, scores, LEAST)
        yield scores.masked_fill(~shown, -1e9)
        yield scores + (1 - ones) * -1e4
        yield scores + (1.0 - ones) * LEAST
        yield scores + (1.0 - shown.long().to(torch.float32)) * LEAST

    def forward(self, x, additive, shown, ones):
        q, k, v = (layer(x) for layer in self.project)
        sdpa = functional.scaled_dot_product_attention
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH)
        biased = self.bias + torch.zeros(ROWS, ROWS).masked_fill(~self.past, LEAST)
        weights = [s.softmax(-1) for s in self.constant_masks(scores)]
        e = scores + torch.zeros(ROWS, ROWS).masked_fill(~self.past, -1e9)
        e = (e - e.amax(-1, keepdim=True)).exp()
        return (sdpa(q, k, v, attn_mask=self.past), *(w @ v for w in weights), e / e.sum(-1, keepdim=True) @ v,
                sdpa(q, k, v, attn_mask=self.bias.masked_fill(~self.past, -math.inf)), sdpa(q, k, v, attn_mask=biased),
                (scores + biased).softmax(-1) @ v,
                sdpa(q, k, v, attn_mask=shown), sdpa(q, k, v, attn_mask=additive),
                *(s.softmax(-1) @ v for s in self.input_masks(scores, additive, shown, ones)),
                weights[0], weights[6])


@pytest.mark.parametrize("scheme, decomposed", [("int8", False), ("int16x8", False), ("int8", True), ("int16x8", True)])
def test_every_mask_is_as_good_as_sdpas(tool, tmp_path, scheme, decomposed):
    net, random = Attentions(), torch.Generator().manual_seed(2)

    def example(i):
        shown = (torch.arange(ROWS) < ROWS - 3 * i)[None]
        additive = torch.zeros(1, ROWS).masked_fill(~shown, (LEAST, -1e9, -1e4, -math.inf)[i % 4])
        return torch.randn(1, ROWS, WIDTH, generator=random), additive, shown, shown.float()

    samples = [example(i) for i in range(5)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, net, samples, example(2), "--quantize", scheme,
                                        decomposed=decomposed)
    quality = [decibels(w, f) for w, f in zip(wanted, found, strict=True)]
    constant, dynamic = quality[:16], quality[16:-2]
    assert min(constant) > quality[0] - 3, quality
    assert min(dynamic) > dynamic[0] - 3, quality
    for weights in found[-2:]:
        assert not weights[0][~net.past.numpy()].any()


class WithHiddenRows(nn.Module):
    """Attention in which one query sees nothing, as in padded batches: it must not cost the others their quantised
    values."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(12)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, shown, additive):
        q = self.project(x)[:, None]
        mine = torch.ops.aten._safe_softmax(additive + q @ q.transpose(2, 3) / 4, -1) @ q
        return (*(nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=m) for m in (shown, additive)), mine)


@pytest.mark.parametrize("scheme, floor", [("int8", 30), ("int16x8", 40)])
@pytest.mark.parametrize("number", [LEAST, -1e9, -1e4, -math.inf])
def test_rows_that_are_hidden_whole_leave_the_others_theirs(tool, tmp_path, scheme, floor, number):
    net, random = WithHiddenRows(), torch.Generator().manual_seed(13)
    shown = torch.ones(ROWS, ROWS, dtype=torch.bool).tril()
    shown[3] = False
    additive = torch.zeros(ROWS, ROWS).masked_fill(~shown, number)
    samples = [(torch.randn(1, ROWS, WIDTH, generator=random), shown, additive) for _ in range(3)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, net, samples, samples[1], "--quantize", scheme)
    seen = shown.any(-1).numpy()
    for w, f in zip(wanted, found, strict=True):
        assert decibels(w[:, :, seen], f[:, :, seen]) > floor


class LogProbabilities(nn.Module):
    """Masked logits under log_softmax and logsumexp, themselves the outputs; the last output stands for the unmasked."""
    KEPT, ALL = 17, 24

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.linear = nn.Linear(WIDTH, self.ALL)
        with torch.no_grad():
            self.linear.weight.mul_(4)
        self.register_buffer("hidden", torch.arange(self.ALL) >= self.KEPT)

    def forward(self, x, shown):
        logits = self.linear(x)
        masked = [logits.masked_fill(self.hidden, value) for value in (-1e3, -1e4, -1e9, LEAST, -math.inf)]
        masked += [logits + torch.zeros(self.ALL).masked_fill(self.hidden, -1e9), torch.where(shown, logits, -1e9)]
        shares = [m.log_softmax(-1) for m in masked]
        shares += [masked[2] - masked[2].logsumexp(-1, keepdim=True)]
        shares += [masked[2].log_softmax(-1)[:, 1:].reshape(2, -1, self.ALL), torch.cat([shares[1], shares[2]])]
        return (*shares, *(m.logsumexp(-1) for m in masked), logits.log_softmax(-1))


@pytest.mark.parametrize("scheme, decomposed", [("int8", False), ("int16x8", True)])
def test_masked_log_probabilities_leave_the_others_theirs(tool, tmp_path, scheme, decomposed):
    net, random = LogProbabilities(), torch.Generator().manual_seed(9)
    shown = (torch.arange(net.ALL) < net.KEPT)[None]
    samples = [(torch.randn(1, 9, WIDTH, generator=random), shown) for _ in range(5)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, net, samples, samples[2], "--quantize", scheme,
                                        decomposed=decomposed)
    kept = [(w[..., :net.KEPT], f[..., :net.KEPT]) for w, f in zip(wanted, found, strict=True)]
    quality = [decibels(w, f) for w, f in kept]
    assert min(quality) > quality[-1] - 4, quality
    assert tool.said.count("calibrate.saturated") == 9, tool.said  # and once for what is joined
    for (_, unmasked), all_found in zip(kept[:10], found):
        masked = all_found[..., net.KEPT:]
        assert masked.max() < 1.3 * unmasked.min() and np.exp(masked).sum(-1).max() < 1e-3


class MaskedOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.linears = nn.ModuleList(nn.Linear(WIDTH, ROWS) for _ in range(5))
        self.register_buffer("hidden", torch.arange(ROWS) > 12)

    def forward(self, x, shown):
        a, b, c, d, e = (linear(x) for linear in self.linears)
        added = torch.zeros(ROWS).masked_fill(self.hidden, -1e9)
        both = e.masked_fill(self.hidden, -1e9)
        return (a.masked_fill(self.hidden, -math.inf), torch.where(shown, b, -1e9).reshape(3, -1),
                c.masked_fill(self.hidden, -1e9)[1:], d + added, both.softmax(-1), both)


@pytest.mark.parametrize("scheme, floor", [("int8", 35), ("int16x8", 45)])
def test_masked_outputs_keep_their_bits_or_say_so(tool, tmp_path, scheme, floor):
    """A mask on what leaves the program is applied to floats; where something else reads the masked quantised values, a
    warning."""
    net, random = MaskedOutputs(), torch.Generator().manual_seed(11)
    samples = [(torch.randn(9, WIDTH, generator=random), ~net.hidden[None]) for _ in range(4)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, net, samples, samples[1], "--quantize", scheme)
    for w, f in list(zip(wanted, found, strict=True))[:4]:
        masked = w < -1e8
        assert decibels(w[~masked], f[~masked]) > floor
        assert (w[masked] == f[masked]).all()
    assert tool.said.count("quantise.masked-output") == 1, tool.said


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.linear, self.depthwise = nn.Linear(8, 8), nn.Conv2d(4, 4, 3, padding=1, groups=4)
        with torch.no_grad():
            self.linear.bias.mul_(30)
            self.depthwise.bias.mul_(1000)

    def forward(self, tiny, zeros, image, x, long):
        steps = torch.arange(8.0)
        return (torch.scalar_tensor(66.0) + tiny, tiny + 66.0, 1e5 - tiny, tiny + 1000 * steps,
                torch.add(x, steps, alpha=1e5), torch.sub(x, x * 1e-4, alpha=5000.0), self.linear(tiny),
                self.linear(zeros), self.depthwise(image), x * 1e9, long.abs().sum(-1), (long.abs() + 1).mean(-1))


@pytest.mark.parametrize("scheme, floor", [("int8", 38), ("int16x8", 70)])
def test_no_constant_overflows(tool, tmp_path, scheme, floor):
    random = torch.Generator().manual_seed(4)
    sizes = [((2, 8), 1e-6), ((2, 8), 0), ((1, 4, 6, 6), 1e-6), ((2, 8), 1), ((1, 100000), 1)]
    example = tuple(torch.randn(*shape, generator=random) * size for shape, size in sizes)
    wanted, found, _ = compiled_and_run(tool, tmp_path, Sums(), [example], example, "--quantize", scheme,
                                        "--observer", "minmax")
    quality = [decibels(w, f) for w, f in zip(wanted, found, strict=True)]
    assert min(quality) > floor, quality


class Waves(nn.Module):
    def forward(self, x):
        return torch.sin(8 * x), torch.sin(64 * x), torch.cos(64 * x), torch.sin(512 * x), torch.sin(1e5 * x)


@pytest.mark.parametrize("scheme, floor", [("int8", 20), ("int16x8", 28)])
def test_functions_of_many_periods(tool, tmp_path, scheme, floor):
    """In 16 bits looked up code by code; where the quantised values do not tell the periods apart, float, and said
    so."""
    x = torch.rand(1, 500, generator=torch.Generator().manual_seed(5)) * 8 - 4
    wanted, found, _ = compiled_and_run(tool, tmp_path, Waves(), [(x,)], (x,), "--quantize", scheme)
    quality = [decibels(w, f) for w, f in zip(wanted, found, strict=True)]
    assert min(quality) > floor, quality


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.lstm, self.gru = nn.LSTM(8, 16, batch_first=True), nn.GRU(8, 16, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0], self.gru(x)[0]


def test_int16_leaves_room_beyond_the_samples(tool, tmp_path):
    random = torch.Generator().manual_seed(7)
    sample = torch.randn(1, 6, 8, generator=random)
    wanted, found, _ = compiled_and_run(tool, tmp_path, Recurrent(), [(sample,)], (1.3 * sample,), "--quantize", "int16x8")
    quality = [decibels(w, f) for w, f in zip(wanted, found, strict=True)]
    assert min(quality) > 36, quality


class RowNorms(nn.Module):
    """Norms whose rows are of unlike size, by their own names and written by hand."""

    def __init__(self):
        super().__init__()
        self.layer, self.rms = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.group, self.instance = nn.GroupNorm(ROWS, ROWS, affine=False), nn.InstanceNorm1d(ROWS)

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        size = x.norm(dim=-1)
        return (self.layer(x), self.rms(x), self.group(x), self.instance(x),
                centred * torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5),
                centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + 1e-5),
                (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6),
                x * x.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt(), functional.normalize(x, dim=-1),
                x / size.unsqueeze(-1), functional.normalize(x, p=1.0, dim=-1),
                x / x.abs().amax(-1, keepdim=True).clamp(min=1e-6))


def coded(x, largest, scheme):
    step = largest * 1.5 / 32767 if scheme == "int16x8" else 2 * largest / 255
    return (x / step).round() * step


@pytest.mark.parametrize("scheme, ratio", [("int16x8", 10), ("int16x8", 1000), ("int8", 100)])
def test_small_rows_are_normalised_as_well_as_their_codes_allow(tool, tmp_path, scheme, ratio):
    """The bar: inputs and results in quantised values, all between in floats. Each row by itself."""
    random = torch.Generator().manual_seed(12)
    sizes = torch.logspace(0, -math.log10(ratio), ROWS)[None, :, None]
    samples = [(3 * sizes * torch.randn(1, ROWS, WIDTH, generator=random),) for _ in range(8)]
    net = RowNorms()
    compiled_and_run(tool, tmp_path, net, samples, samples[0], "--quantize", scheme)
    largest = max(sample[0].abs().max() for sample in samples)
    # Of 8 bits the bar asks for less than a quantised value of the largest row: one rounding decides, so one sample is
    # asked.
    for k, (x,) in enumerate(samples if scheme == "int16x8" else samples[3:4]):
        with torch.no_grad():
            wanted, best = ([y.numpy() for y in net(x)] for x in (x, coded(x, largest, scheme)))
        found = tool.run(tmp_path / "net.pte", [x.numpy()], tmp_path)
        for form, (w, f, b) in enumerate(zip(wanted, found, best, strict=True)):
            b = coded(torch.from_numpy(b), abs(w).max(), scheme).numpy()
            for row in range(ROWS):
                bar = min(decibels(w[0, row], b[0, row]) - 6, 74)
                assert decibels(w[0, row], f[0, row]) > bar, (k, form, row)


class Tokens(nn.Module):
    """One row in a stream of rows that are a hundred times larger, as a class token at its start."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(13)
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, size):
        return (self.last(self.norm(x * size)),)


class PaddedRows(nn.Module):
    """Rows of zeros, as windows are padded with, next to others: divided by their size, in the ways that people
    write."""

    def forward(self, x, mask):
        forms = []
        forms.append(functional.normalize(x, dim=-1))  # torchvision's swin_v2, CLIP's heads
        forms.append(x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12))
        forms.append(x / (x.norm(dim=-1, keepdim=True) + 1e-10))
        forms.append(x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-12))
        forms.append(x / x.abs().sum(-1, keepdim=True).clamp(min=1e-9))
        forms.append((x * mask).sum(-2) / mask.sum(-2).clamp(min=1e-9))  # sentence-transformers' pooling
        return tuple(forms)


# A scale that held 1 / eps, as the rows of zeros have it, left nothing to the others.
@pytest.mark.parametrize("scheme, floor", [("int8", 28), ("int16x8", 60)])
def test_padded_rows_leave_the_others_their_factors(tool, tmp_path, scheme, floor):
    torch.manual_seed(3)
    samples = []
    for _ in range(4):
        x, mask = torch.rand(3, 8, 16) * 2 - 1, torch.ones(3, 8, 1)
        x[:, 5:], mask[:, 5:], x[2], mask[2] = 0, 0, 0, 0
        samples.append((x, mask))
    wanted, found, _ = compiled_and_run(tool, tmp_path, PaddedRows(), samples, samples[0], "--target", "tosa-int",
                                        "--quantize", scheme)
    for i, (want, have) in enumerate(zip(wanted, found)):
        real = (slice(0, 2), slice(0, 5)) if want.ndim == 3 else slice(0, 2)
        assert decibels(want[real], have[real]) > floor, f"form {i}"
        assert not have[2].any(), f"form {i}: zeros stay zeros"


def test_a_stream_of_unlike_rows_takes_16_bits(tool, tmp_path):
    random = torch.Generator().manual_seed(14)
    size = torch.ones(1, ROWS, 1)
    size[0, 0] = 0.01
    samples = [(torch.randn(1, ROWS, WIDTH, generator=random), size) for _ in range(4)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, Tokens(), samples, samples[1], "--quantize", "int8")
    assert decibels(wanted[0], found[0]) > 30
    assert tool.said.count("quantise.unlike-rows") == 1, tool.said


def test_int16_leaves_room_in_front_of_functions_without_negative_domain(tool, tmp_path):
    """A layer norm's 1 / sqrt(variance) has no value for negative quantised values, whatever room is above the
    samples."""
    samples = [(x[None],) for x in torch.randn(8, 1, 32, generator=torch.Generator().manual_seed(7))]
    inputs = (1.2 * max((x for x, in samples), key=lambda x: x.std()),)
    (wanted,), (found,), _ = compiled_and_run(tool, tmp_path, One(nn.LayerNorm(32)), samples, inputs, "--quantize", "int16x8")
    assert decibels(wanted, found) > 60


class One(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return (self.layer(x),)


class Skips(nn.Module):
    """As in a detector: the next stage reads what is concatenated with something eight times as large, too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.stem, self.stage, self.large = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        with torch.no_grad():
            self.large.weight.mul_(8)
            self.large.bias.mul_(8)

    def forward(self, x):
        stem = self.stem(x)
        return self.stage(stem), torch.cat([stem, self.large(x)], -1).relu()


def test_what_is_concatenated_and_read_elsewhere_keeps_its_steps(tool, tmp_path):
    samples = [(torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(i)),) for i in range(8)]
    wanted, found, _ = compiled_and_run(tool, tmp_path, Skips(), samples, samples[3], "--quantize", "int8")
    assert decibels(wanted[0], found[0]) > 36 and decibels(wanted[1], found[1]) > 34
