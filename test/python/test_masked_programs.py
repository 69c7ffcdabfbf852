# SPDX-License-Identifier: Apache-2.0
"""Rows that a mask chooses, and slices that begin where a tensor says, as users wrote them (the numbers are those of their
issues). Each program has a delegate for all of it, and gives what eager PyTorch gives: with none, some and all rows chosen."""
import copy
import warnings

import pytest
import tosaic
import torch
from executors import Both, held
from functions import Of
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_leaves

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 6


class Scaled(nn.Module):
    """pytorch 106580: some elements are scaled in place."""

    def forward(self, x, mask):
        x = x.clone()
        x[mask] *= 0.1
        return x


class Layer(nn.Module):
    """coremltools 2183: a layer for the rows that are no padding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x, mask):
        y = torch.zeros_like(x)
        y[mask] = self.layer(x[mask])
        return y


class Experts(nn.Module):
    """executorch 4630: a mixture of experts, each with the rows that chose it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, mask):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (chosen == e) & mask
            y[rows] += expert(x[rows]) * weights[rows].unsqueeze(-1)
        return y


class SparseExperts(nn.Module):
    """transformers' Mixtral and Qwen MoE blocks up to 4.x: where() of a one-hot mask, index_add_ of what an expert made."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 4)) for _ in range(3))

    def forward(self, x, mask):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True) * mask[:, None]
        experts = nn.functional.one_hot(chosen, 3).permute(2, 1, 0)
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            slot, row = torch.where(experts[e])
            made = expert(x[None, row].reshape(-1, 4)) * weights[row, slot, None]
            y.index_add_(0, row, made)
        return y


class Images(nn.Module):
    """A convolution for the images that are wanted."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2))

    def forward(self, x, mask):
        images = x.repeat(1, 4).view(-1, 2, 2, 4)
        y = torch.full((ROWS, 3, 1, 2), -1.0)
        y[mask] = self.conv(images[mask])
        return y


class Heads(nn.Module):
    """Rows are split into heads and joined again."""

    def forward(self, x, mask):
        y = x * 0
        heads = x[mask].view(-1, 2, 2).transpose(1, 2).softmax(-1)
        y[mask] = heads.reshape(-1, 4) + 1
        return y


def put(rows, x, mask, base=None):
    y = x.clone() if base is None else base
    y[mask] = rows
    return y


FUNCTIONS = {
    "mean": lambda x, m: x[m].mean(),  # pytorch 134241
    "mean of rows": lambda x, m: x[m].mean(0),
    "sum": lambda x, m: x[m].square().sum(dim=0),
    "sum of integers": lambda x, m: (x * 10).to(torch.int32)[m].sum(),
    "count": lambda x, m: x.sum() / m.sum() + x[m].shape[0],  # pytorch 91990
    "loss": lambda x, m: (x[m] - (x * 2)[m]).square().mean(),
    "elements": lambda x, m: put(x[x > 0].log(), x, x > 0),
    "masked_select": lambda x, m: x.masked_select(x > 0).sum(),
    "behind a dim": lambda x, m: put_behind(x, m),
    "three dims": lambda x, m: put(x.view(2, 3, 4)[m.view(2, 3)].tanh(), x.view(2, 3, 4), m.view(2, 3)),
    "broadcast": lambda x, m: put(x[m].sum(-1, keepdim=True), x, m),
    "two masks": lambda x, m: put(x[m].relu() + 1, x, m) + put(x[~m].neg(), x, ~m),
    "accumulated": lambda x, m: x.index_put((m,), x[m] * 2, accumulate=True),
    "concatenated": lambda x, m: put(torch.cat([x[m][:, 2:], x[m][:, :2]], -1), x, m),
}


def at_places(x, places, how="put"):
    y = torch.zeros_like(x)
    made = (x[places] * 2).tanh()
    return y.index_put((places,), made) if how == "put" else y.index_add(0, places, made)


def pairs(x):
    row, column = torch.where(x > 0)
    return torch.zeros(4).index_add(0, column, x[row, column].log()) + x[row].sum(0)


FUNCTIONS |= {
    "where": lambda x, m: at_places(x, torch.where(m)[0]),
    "where added": lambda x, m: at_places(x, torch.where(m)[0], "add"),
    "nonzero": lambda x, m: at_places(x, m.nonzero().squeeze(-1)),
    "nonzero's column": lambda x, m: at_places(x, m.nonzero()[:, 0], "add"),
    "nonzero as tuple": lambda x, m: at_places(x, m.nonzero(as_tuple=True)[0]),
    "index_select": lambda x, m: x.index_select(0, torch.where(m)[0]).sum(0),
    "places in a matrix": lambda x, m: pairs(x),
    "places of numbers": lambda x, m: at_places(x, torch.where((x[:, 0] * 2).int())[0]),
    "count of places": lambda x, m: x.sum(0) + torch.where(m)[0].shape[0],
}


def put_behind(x, m):
    y = x.t().clone()
    y[:, m] = y[:, m] * 2 + 1
    return y


MODULES = {"scaled": Scaled, "layer": Layer, "experts": Experts, "sparse experts": SparseExperts, "images": Images, "heads": Heads}
NAMES = [*MODULES, *FUNCTIONS]


def module_of(name):
    return (MODULES[name]() if name in MODULES else Of(FUNCTIONS[name])).eval()


def samples():
    torch.manual_seed(1)
    masks = [torch.arange(ROWS) % 2 == 0, torch.ones(ROWS, dtype=torch.bool), torch.zeros(ROWS, dtype=torch.bool)]
    return [(torch.randn(ROWS, 4), mask) for mask in masks]


def same(got, wanted, decibels=None):
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        if decibels is None or not isinstance(b, torch.Tensor) or not b.is_floating_point():
            torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), rtol=1e-5, atol=1e-5, equal_nan=True)
        elif b.square().sum() > 0:
            error = (a - b).square().sum()
            assert 10 * torch.log10(b.square().sum() / error.clamp_min(1e-20)) > decibels, (a, b)


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
@pytest.mark.parametrize("name", NAMES)
def test_chosen_rows(name, target, tmp_path):
    module, inputs = module_of(name), samples()
    program = torch.export.export(module, inputs[0], strict=False)
    session = Both(tosaic.Program.of(program).session)
    artifact = tosaic.compile(program, target=target)
    artifact.save(tmp_path / "m.pte")
    loaded = held(target, tosaic.load, tmp_path / "m.pte")
    for x in inputs:
        wanted = module(*x)
        same(session.run(*x), wanted)
        same(artifact.run(*x), wanted)
        same(loaded.run(*x), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_chosen_rows_in_executorch(name, tmp_path):
    import tosaic.executorch.runtime

    module, inputs = module_of(name), samples()
    tosaic.compile(torch.export.export(module, inputs[0], strict=False), target="tosa-fp").save(tmp_path / "m.pte")
    method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("forward")
    for x in inputs:
        same(tree_leaves(method.execute(list(x))), tree_leaves(module(*x)))


@pytest.mark.parametrize("name", ["scaled", "layer", "experts", "sparse experts", "heads", "broadcast", "behind a dim"])
def test_chosen_rows_in_integers(name):
    module, inputs = module_of(name), samples()
    program = torch.export.export(module, inputs[0], strict=False)
    session = Both(tosaic.compile(program, target="tosa-int", calibration=inputs).session)
    for x in inputs[:2]:
        same(session.run(*x), module(*x), decibels=20 if "experts" in name else 25)


MIXING = {
    "softmax": lambda x, m: put(x[m].softmax(0), x, m),
    "cumsum": lambda x, m: put(x[m].cumsum(0), x, m),
    "reversed": lambda x, m: put(x[m].flip(0), x, m),
    "numbered": lambda x, m: put(x[m] * torch.arange(x[m].shape[0]).unsqueeze(-1), x, m),
    "centred": lambda x, m: put(x[m] - x[m].mean(0), x, m),
    "returned": lambda x, m: x[m] * 2,
    "places beside each other": lambda x, m: put(x[m] + (torch.where(m)[0] // 2).unsqueeze(-1), x, m),
    "look-ups": lambda x, m: put(x[(x[:, 0] * 3).long().clamp(0, 5)[m]], x, m),
    "places counted": lambda x, m: at_places(x, m.nonzero().argmax(1)),
    "a place twice": lambda x, m: torch.zeros(6, 4).index_put((torch.where(m)[0] // 2,), x[m], accumulate=True),
}


@pytest.mark.parametrize("name", MIXING)
def test_rows_that_know_each_other_are_not_computed_apart(name):
    """Right or refused, never all rows in place of those that are chosen."""
    module, inputs = Of(MIXING[name]), samples()
    program = torch.export.export(module, inputs[0], strict=False)
    try:
        artifact = tosaic.compile(program, target="tosa-fp")
        got = [artifact.run(*x) for x in inputs]
    except tosaic.Error:
        return
    for result, x in zip(got, inputs):
        same(result, module(*x))


class Narrowed(nn.Module):
    """executorch 4100, 1933: a cache that is written where a tensor says."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 8, 4))

    def forward(self, k, at):
        place = at.item()
        torch._check_is_size(place)
        torch._check(place < self.keys.size(2))
        self.keys.narrow(2, place, 1).copy_(k)
        return self.keys.sum(-1), self.keys.narrow(2, place, 1) * 2


class Sliced(nn.Module):
    """A block of rows behind the place, read and written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.ones(1, 2, 8, 4))

    def forward(self, k, at):
        place = at.item()
        torch._check_is_size(place)
        torch._check(place + 2 <= 8)
        block = self.keys[:, :, place:place + 2]
        block += k
        return self.keys.cumsum(2), block.sum(2)


class Selected(nn.Module):
    """One row by its number, behind arithmetic on that."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("table", torch.randn(9, 4))

    def forward(self, k, at):
        place = at.item()
        torch._check_is_size(place)
        torch._check(place < 7)
        return self.table[place + 1] + k, torch.narrow(self.table, 0, place, 3).sum(0)


class Counted(nn.Module):
    """The place is a counter of the model's own, which moves on."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 8, 4))
        self.register_buffer("at", torch.zeros(1, dtype=torch.int64))

    def forward(self, k, at):
        place = self.at.item()
        torch._check_is_size(place)
        torch._check(place < 8)
        self.at.add_(1)
        self.keys.narrow(2, place, 1).copy_(k)
        return self.keys.sum(-1), self.at + at


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("target", ["tosa-fp", "vulkan", "tosa-int"])
@pytest.mark.parametrize("cls", [Narrowed, Sliced, Selected, Counted])
def test_slices_that_begin_where_a_tensor_says(cls, target, decomposed, tmp_path):
    torch.manual_seed(2)
    runs = [(torch.randn(1, 2, 1, 4), torch.tensor([at])) for at in (3, 0, 5, 6)]
    program = torch.export.export(cls(), runs[0], strict=False)
    if decomposed:
        program = program.run_decompositions({})
    how = {"calibration": runs} if target == "tosa-int" else {}
    tosaic.compile(program, target=target, **how).save(tmp_path / "m.pte")
    eager = copy.deepcopy(cls())
    sessions = [held(target, tosaic.load, tmp_path / "m.pte")]
    if target == "tosa-fp":
        sessions.append(Both(tosaic.Program.of(program).session))
    for x in runs:
        wanted = eager(*x)
        for session in sessions:
            same(session.run(*x), wanted, decibels=30 if target == "tosa-int" else None)


class Rotated(nn.Module):
    """ExecuTorch's llama with enable_dynamic_shape: tables, mask and cache narrowed at a place, as long as the tokens are."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("keys", torch.zeros(1, 16, 4))
        self.register_buffer("cosines", torch.randn(16, 4), persistent=False)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16, dtype=torch.bool)), persistent=False)

    def forward(self, x, at):
        length, place = x.shape[1], at[-1].item()
        torch._check_is_size(place)
        torch._check(place + length <= 16)
        self.keys.narrow(1, place, length).copy_(x * self.cosines.narrow(0, place, length))
        mask = self.mask.narrow(0, place, length)
        return nn.functional.scaled_dot_product_attention(x, self.keys, self.keys, attn_mask=mask)


def test_slices_as_long_as_an_input(tmp_path):
    """Choosing the sizes dropped the number that only an argument named."""
    program = torch.export.export(Rotated(), (torch.randn(1, 3, 4), torch.tensor([2])), strict=False,
                                  dynamic_shapes=({1: Dim("length", min=2, max=8)}, None))
    tosaic.compile(program, target="tosa-fp", sizes=["x.1=3"]).save(tmp_path / "m.pte")
    loaded, itself = Both(tosaic.load, tmp_path / "m.pte"), Both(tosaic.Program.of(program).session)
    one, other = Rotated(), Rotated()
    for place in (0, 3, 6, 13):
        x, at = torch.randn(1, 3, 4), torch.tensor([place])
        same(loaded.run(x, at), one(x, at))
    for place, length in ((0, 3), (3, 8), (11, 2), (13, 3)):
        x, at = torch.randn(1, length, 4), torch.tensor([place])
        same(itself.run(x, at), other(x, at))


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
@pytest.mark.parametrize("place", [8, -1])
def test_a_place_outside_of_the_cache_is_refused(place, target, tmp_path):
    """On Vulkan it was not, where the program is given the place."""

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(1, 8, 4))

        def forward(self, x, at):
            self.keys.index_copy_(1, at, x)
            return self.keys.sum(-1)

    program = torch.export.export(Cache(), (torch.randn(1, 1, 4), torch.tensor([3])), strict=False)
    tosaic.compile(program, target=target).save(tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    session.run(torch.ones(1, 1, 4), torch.tensor([7]))
    with pytest.raises(tosaic.Error, match="outside"):
        session.run(torch.randn(1, 1, 4), torch.tensor([place]))
    assert torch.as_tensor(session.state_dict()["keys"]).sum() == 4


def test_a_computed_place_outside_of_the_cache_is_refused(tmp_path):
    program = torch.export.export(Narrowed(), (torch.randn(1, 2, 1, 4), torch.tensor([3])), strict=False)
    tosaic.compile(program, target="tosa-fp").save(tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    with pytest.raises(tosaic.Error, match="outside"):
        session.run(torch.randn(1, 2, 1, 4), torch.tensor([8]))


class Kept(nn.Module):
    """Detections above a threshold, counted in a buffer: results as large as the values say."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, boxes, scores):
        keep = scores > 0.5
        self.seen.add_(keep.sum())
        return boxes[keep] * 2, torch.nonzero(keep), torch.masked_select(scores, keep), self.seen.clone(), boxes.shape[0]


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_as_large_as_values_say_of_a_program_itself(dynamic):
    """It was refused, though its .pte runs."""
    boxes = Dim("boxes", min=2, max=16)
    program = torch.export.export(Kept(), (torch.randn(ROWS, 4), torch.rand(ROWS)), strict=False,
                                  dynamic_shapes=({0: boxes}, {0: boxes}) if dynamic else None)
    eager = Kept()
    itself = tosaic.Program.of(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tosaic.CompileWarning)  # of delegates, which the user did not ask for
        session = Both(itself.session)
    second = session.clone()
    for count in (ROWS, 3, 16) if dynamic else (ROWS,):
        for scores in (torch.rand(count), torch.zeros(count), torch.ones(count)):
            x = torch.randn(count, 4)
            *tensors, size = session.run(x, scores)
            *wanted, rows = eager(x, scores)
            assert size == rows
            for got, want in zip(tensors, wanted, strict=True):
                assert got.shape == want.shape and torch.equal(torch.as_tensor(got).to(want.dtype), want)
    assert int(second.run(torch.randn(ROWS, 4), torch.ones(ROWS))[3]) == ROWS


class Leading(nn.Module):
    """As many rows as a tensor says, and a tensor of that size."""

    def forward(self, x, k):
        rows = k.item()
        torch._check(rows >= 1)
        torch._check(rows <= ROWS)
        return x[:rows].sum(0), torch.zeros(rows, 2) + 1


def test_sizes_that_a_tensor_says(tmp_path):
    """compile refused a number of the program as an argument, and so did the program itself."""
    x = torch.randn(ROWS, 3)
    program = torch.export.export(Leading(), (x, torch.tensor(3)), strict=False)
    artifact = tosaic.compile(program, target="tosa-fp")
    artifact.save(tmp_path / "m.pte")
    assert not [m for m in artifact.summary.messages if m.code == "pack.executorch-only"]
    for session in (Both(tosaic.load, tmp_path / "m.pte"), Both(tosaic.Program.of(program).session)):
        for rows in (3, ROWS, 1):
            for got, want in zip(session.run(x, torch.tensor(rows)), Leading()(x, torch.tensor(rows)), strict=True):
                assert got.shape == want.shape
                torch.testing.assert_close(torch.as_tensor(got), want)
