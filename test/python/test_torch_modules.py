# SPDX-License-Identifier: Apache-2.0
"""The modules of torch.nn as PyTorch's own tests make and call them (torch.testing's module_db), compiled and run.
`--all-models` takes each sample instead of a slice of them (2 minutes)."""

import copy
import math
import random
import warnings

import pytest
import torch
import tosaic
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

WITHOUT = {
    "nn.CrossMapLRN2d": "PyTorch cannot export it",
    "nn.FractionalMaxPool3d": "PyTorch refuses its own sample: random numbers of another type",
    "nn.LinearCrossEntropyLoss": "its chunks are operators of a library of PyTorch's own: kernel.unknown says so",
}
KNOWN = {
    ("nn.MultiLabelMarginLoss", 6): "PyTorch's decomposition gives one number a dim, which PyTorch's kernel does not",
}


def samples(names=None):
    for info in module_db:
        if info.name in WITHOUT or (names and info.name not in names):
            continue
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
        for number, sample in enumerate(inputs):
            if sample.forward_input is not None and (info.name, number) not in KNOWN:
                yield info, number, sample


def exported(info, sample):
    """The program and the arguments of a call; None where PyTorch itself cannot export the call."""
    torch.manual_seed(0)
    module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).eval()
    call = sample.forward_input
    try:
        return torch.export.export(module, call.args, call.kwargs), call.args, call.kwargs
    except Exception:
        return None


def tensors(tree):
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def farthest(info, sample, share, **options):
    """What is wrong with the results; empty: nothing. `share`: of a result's largest element."""
    made = exported(info, sample)
    if not made:
        return ""
    program, args, kwargs = made
    wanted = tensors(copy.deepcopy(program.module())(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
    given = tensors(tosaic.compile(program, **options).run(*args, **kwargs))
    if [(x.shape, x.dtype) for x in wanted] != [(x.shape, x.dtype) for x in given]:
        return f"{[x.shape for x in wanted]} became {[x.shape for x in given]}"
    for want, got in zip(wanted, given, strict=True):
        finite = want[torch.isfinite(want)]
        room = share * max(finite.abs().max().item(), 0.01) if finite.numel() and want.is_floating_point() else 0
        if not torch.allclose(want.double(), got.double(), rtol=0, atol=room, equal_nan=True):
            return f"{want} became {got}"
    return ""


@pytest.mark.filterwarnings("ignore")
def test_each_module_gives_what_pytorch_gives(request):
    torch.manual_seed(1)
    every = list(samples())
    assert len(every) > 800
    if not request.config.getoption("--all-models"):
        every = random.Random(7).sample(every, 60)
    wrong = []
    for info, number, sample in every:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if found := farthest(info, sample, 2e-5, target="tosa-fp"):
                wrong.append(f"{info.name}[{number}] {sample.desc}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nn.HingeEmbeddingLoss", "nn.CosineEmbeddingLoss"])
def test_labels_are_told_apart_in_int8(name):
    """Both choose by target == 1 and target == -1, neither of which was a quantised value."""
    torch.manual_seed(1)
    cases = [sample for _, _, sample in samples([name]) if pytree.tree_leaves(sample.forward_input.args)[-1].dim()]
    assert cases
    for sample in cases:
        info = next(m for m in module_db if m.name == name)
        call = sample.forward_input.args
        assert not farthest(info, sample, 0.03, target="tosa-int", calibration=[call]), sample.desc


def test_what_the_samples_hold_is_compared_as_codes():
    class Compare(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.tensor(1.0)

        def forward(self, x):
            return x == 1, x != 1, x < 1, x >= 1, x > -1, x == self.one, x < 0.3

    x = torch.tensor([1.0, -1, 0.25, 1, -1, 0.35])
    for quantize in ("int8", "int16x8"):
        artifact = tosaic.compile(Compare(), x, target="tosa-int", calibration=[x], quantize=quantize)
        for want, got in zip(Compare()(x), artifact.run(x), strict=True):
            assert torch.equal(want, got), quantize


def test_a_tensor_given_twice_is_two_inputs():
    class Difference(torch.nn.Module):
        def forward(self, a, b):
            return a - b

    x = torch.randn(3)
    artifact = tosaic.compile(Difference(), (x, x), target="tosa-fp")
    assert torch.equal(artifact.run(torch.tensor([5.0, 6, 7]), torch.tensor([1.0, 1, 1])), torch.tensor([4.0, 5, 6]))


def decibels(wanted, given):
    return 10 * math.log10(wanted.square().sum() / (wanted - given).square().sum())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("least", [float("-inf"), -1e9, torch.finfo(torch.float32).min])
def test_a_maximum_whose_index_nobody_reads(least):
    """max(dim) gives two results. What subtracts the first from masked scores, attention with sinks among them, is what it is
    with amax: the mask shares a quantised value, and a target without integers takes the maximum."""
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.triu(torch.full((6, 6), least), 1))
            self.register_buffer("sinks", torch.randn(1, 4, 1, 1))

        def forward(self, q, k, v):
            scores = torch.cat([q @ k.mT / 3 + self.mask, self.sinks.expand(-1, -1, 6, -1)], -1)
            scores = scores - scores.max(-1, keepdim=True).values
            return scores.softmax(-1)[..., :-1] @ v

    torch.manual_seed(1)
    calls = [tuple(torch.randn(1, 4, 6, 8) for _ in range(3)) for _ in range(8)]
    model = Attention()
    assert all(n.taken for n in tosaic.compile(model, calls[0], target="tosa-fp").summary.nodes)
    artifact = tosaic.compile(model, calls[0], target="tosa-int", calibration=calls)
    assert decibels(model(*calls[0]), artifact.run(*calls[0])) > 30


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("quantize", ["int8", "int16x8"])
def test_booleans_next_to_floats_are_0_and_1(quantize):
    class Masked(torch.nn.Module):
        def forward(self, x, mask):
            return (x * mask, ~mask * (x + 1), x + mask, torch.cat([x, mask]), torch.cat([mask, x * 2], 1), torch.stack([x, mask]),
                    torch.where(mask, x, mask), torch.minimum(mask, x), x * (x > 0), torch.hstack([mask[:, :1], x]))

    torch.manual_seed(1)
    calls = [(torch.randn(4, 6), torch.rand(4, 6) > 0.4) for _ in range(8)]
    artifact = tosaic.compile(Masked(), calls[0], target="tosa-int", calibration=calls, quantize=quantize)
    assert all(n.taken for n in artifact.summary.nodes)
    for wanted, given in zip(Masked()(*calls[0]), artifact.run(*calls[0]), strict=True):
        assert decibels(wanted, given) > 35
