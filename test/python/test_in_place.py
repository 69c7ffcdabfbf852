# SPDX-License-Identifier: Apache-2.0
"""A write into a cache is a write of its rows: where nothing else reads the cache's old content, it is not copied; where
something does, the results are those of the program that copies."""
import copy

import pytest
import tosaic
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")
SLOTS = 12


class Cache(nn.Module):
    """`how` says what is done to the cache, and what is read of it when."""

    def __init__(self, how, slots=SLOTS):
        super().__init__()
        self.how = how
        torch.manual_seed(0)
        self.register_buffer("keys", torch.randn(1, 2, slots, 4))

    def forward(self, k, at):
        return self.how(self, k, at)


def index_copy(m, k, at):
    m.keys.index_copy_(2, at, k)
    return m.keys.sum(-1)


def index_put(m, k, at):
    m.keys[:, :, at] = k
    return m.keys * 2


def old_is_returned(m, k, at):
    old = m.keys.clone()
    m.keys.index_copy_(2, at, k)
    return old, m.keys.sum(-1)


def old_is_read_behind_the_write(m, k, at):
    old = m.keys.clone()
    m.keys.index_copy_(2, at, k)
    return m.keys.sum(-1) - old.mean(-1)


def new_is_returned(m, k, at):
    m.keys.index_copy_(2, at, k)
    return m.keys


def two_writes(m, k, at):
    m.keys.index_copy_(2, at, k)
    m.keys.index_copy_(2, (at + 1) % SLOTS, k * 2)
    return m.keys.sum(-1)


def rows_of_the_cache_itself(m, k, at):
    m.keys.index_copy_(2, at, m.keys[:, :, 2:3])
    return m.keys.sum(-1) + k.sum()


def whole_of_itself(m, k, at):
    m.keys.index_copy_(2, torch.arange(SLOTS), m.keys.flip(2))
    return m.keys.sum(-1) + k.sum() + at.sum()


def scaled_before_the_write(m, k, at):
    scores = m.keys * k
    m.keys.index_copy_(2, at, k)
    return scores


HOWS = [index_copy, index_put, old_is_returned, old_is_read_behind_the_write, new_is_returned, two_writes,
        rows_of_the_cache_itself, whole_of_itself, scaled_before_the_write]
EXAMPLE = (torch.randn(1, 2, 1, 4), torch.tensor([3]))


@pytest.mark.parametrize("target", ["tosa-fp", "vgf"])
@pytest.mark.parametrize("how", HOWS, ids=lambda how: how.__name__)
def test_as_in_eager(how, target):
    module = Cache(how).eval()
    artifact = tosaic.compile(module, EXAMPLE, target)
    runs = [artifact.session(), artifact.session(executor="interp")]
    eagers = [copy.deepcopy(module) for _ in runs]
    torch.manual_seed(1)
    for at in (0, 5, 5, SLOTS - 1, 2):
        k, place = torch.randn(1, 2, 1, 4), torch.tensor([at])
        for run, eager in zip(runs, eagers):
            torch.testing.assert_close(run(k, place), eager(k, place), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(run.state_dict()["keys"], eager.keys)


@pytest.mark.parametrize("how", [index_copy, index_put, old_is_returned, two_writes], ids=lambda how: how.__name__)
def test_in_executorchs_runtime(how):
    import tosaic.executorch.runtime

    module = Cache(how).eval()
    program = tosaic.executorch.runtime.load_program(tosaic.compile(module, EXAMPLE, "tosa-fp").pte)
    method = program.load_method("forward")
    for at in (0, 5, SLOTS - 1):
        inputs = torch.randn(1, 2, 1, 4), torch.tensor([at])
        wanted = module(*inputs)
        torch.testing.assert_close(tuple(method.execute(list(inputs))), wanted if type(wanted) is tuple else (wanted,),
                                   rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how, copies", [(index_copy, 0), (index_put, 0), (new_is_returned, 1), (old_is_returned, 1)],
                         ids=lambda x: getattr(x, "__name__", str(x)))
def test_the_program_copies_no_cache(how, copies, tmp_path):
    tosaic.compile(Cache(how).eval(), EXAMPLE, "tosa-fp").save(tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    session.measure()
    session(*EXAMPLE)
    assert sum(name == "aten::copy_" for name, *_ in session.profile()) == copies


def test_a_write_outside_the_cache_changes_nothing():
    module = Cache(index_copy).eval()
    session = tosaic.compile(module, EXAMPLE, "tosa-fp").session()
    with pytest.raises(tosaic.Error, match="outside"):
        session(EXAMPLE[0], torch.tensor([SLOTS]))
    assert torch.equal(session.state_dict()["keys"], module.keys)
    torch.testing.assert_close(session(*EXAMPLE), module(*EXAMPLE))


class NumbersRegions(nn.Module):
    """The mask of MONAI's SwinUNETR: at a size below the window, some of the regions that it writes are empty."""

    def forward(self, x):
        regions = torch.zeros(1, *x.shape[1:3], 1)
        slices = slice(-4), slice(-4, -2), slice(-2, None)
        for number, (h, w) in enumerate((h, w) for h in slices for w in slices):
            regions[:, h, w, :] = number
        return x + regions


@pytest.mark.parametrize("size", [3, 4, 7])
def test_a_write_to_a_part_without_elements(size):
    x = torch.randn(1, size, size, 2)
    assert torch.equal(tosaic.compile(NumbersRegions(), (x,), "tosa-fp").run(x), NumbersRegions()(x))


def test_a_step_costs_the_same_whatever_the_cache():
    """The bytes of a step, by its time: a cache 64 times as large is 16 MB more to copy, milliseconds."""
    def one_row(m, k, at):
        m.keys.index_copy_(2, at, k)
        return m.keys[:, :, 0].sum(-1)

    def seconds(slots):
        session = tosaic.compile(Cache(one_row, slots).eval(), EXAMPLE, "tosa-fp").session(threads=1)
        session.measure()
        best = 1.0
        for _ in range(30):
            session(*EXAMPLE)
            best = min(best, sum(s for _, s, within, *_ in session.profile() if not within))
        return best

    assert seconds(1 << 19) < 20 * seconds(1 << 13)
