# SPDX-License-Identifier: Apache-2.0
"""Programs with dynamic sizes: run at any of them, compiled at chosen ones, compared with eager PyTorch."""

import itertools

import pytest
import torch
import tosaic
from executors import Both, held
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")


class Convolutions(nn.Module):
    """Batch, height and width; a mean over what is left of them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.norm(self.first(x)))
        return self.head((self.second(y) + y).mean((2, 3)))


class Positions(nn.Module):
    """Slices of a table, a mask and a reshape, all as long as the sequence."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(32, 16), nn.Embedding(64, 16)
        self.attention, self.norm = nn.MultiheadAttention(16, 4, batch_first=True), nn.LayerNorm(16)

    def forward(self, words):
        batch, length = words.shape
        x = self.words(words) + self.places(torch.arange(length))
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        y = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.norm(y).reshape(batch * length, 16), words.size(1)


class Pairs(nn.Module):
    """The second input is twice as long as the first, and one longer."""

    def forward(self, x, y):
        return torch.cat([x, x, y[:1]]) * y.sum(0, keepdim=True), x.shape[0] + y.shape[0]


class Repeated(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x.repeat(2, 1)[: n + 1].flip(0).cumsum(0), torch.nn.functional.pad(x, (0, 0, 1, 2))


def rows(i):
    return torch.randn(i, 3)


batch, height, length, n = Dim("batch", max=4), Dim("height", min=8, max=40), Dim("length", min=2, max=64), Dim("n", max=9)
AUTO = Dim.AUTO
# Name -> (module, dynamic shapes, a call at sizes, some sizes; the choice that a compilation needs).
PROGRAMS = {
    "convolutions": (Convolutions, {"x": {0: batch, 2: height, 3: Dim("width", min=8, max=40)}},
                     lambda b, h, w: (torch.randn(b, 3, h, w),), [(2, 16, 16), (1, 8, 40), (4, 33, 9)],
                     lambda b, h, w: [f"x.0={b}", f"x.2={h}", f"x.3={w}"]),
    "positions": (Positions, {"words": {0: batch, 1: length}}, lambda b, s: (torch.randint(0, 32, (b, s)),),
                  [(2, 7), (1, 64), (4, 2)], lambda b, s: [f"words.0={b}", f"words.1={s}"]),
    "pairs": (Pairs, {"x": {0: n}, "y": {0: 2 * n + 1}}, lambda i: (rows(i), rows(2 * i + 1)), [(3,), (1,), (9,)],
              lambda i: [f"y.0={2 * i + 1}"]),
    "repeated": (Repeated, {"x": {0: AUTO}}, lambda i: (rows(i),), [(4,), (2,), (17,)], lambda i: [f"x.0={i}"]),
}


def program_of(name):
    make, shapes, call, sizes, choice = PROGRAMS[name]
    torch.manual_seed(3)
    module = make().eval()
    return module, torch.export.export(module, call(*sizes[0]), dynamic_shapes=shapes), call, sizes, choice


def check(module, session, args):
    wanted, got = module(*args), session.run(*args)
    for a, b in zip(torch.utils._pytree.tree_leaves(wanted), torch.utils._pytree.tree_leaves(got), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
        else:
            assert type(a) is type(b) and a == b


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_at_every_size(name, device):
    module, program, call, sizes, _ = program_of(name)
    session = held(device, lambda **how: tosaic.Program.of(program).session(device=device, **how))
    for size in [*sizes, sizes[0]]:
        check(module, session, call(*size))
    check(module, session.clone(), call(*sizes[1]))


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_chosen_size_is_a_program_of_that_size(name, target, tmp_path):
    module, program, call, sizes, choice = program_of(name)
    for size in sizes:
        tosaic.compile(program, target=target, sizes=choice(*size)).save(tmp_path / "m.pte")
        check(module, held(target, tosaic.load, tmp_path / "m.pte"), call(*size))


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128", "ethos-u85-256"])
def test_integers_are_those_of_a_program_exported_at_that_size(target):
    module, program, call, _, choice = program_of("convolutions")
    size = (1, 20, 12)
    samples = [call(*size) for _ in range(4)]
    fixed = torch.export.export(module, samples[0])
    a = tosaic.compile(program, target=target, sizes=choice(*size), calibration=samples)
    b = tosaic.compile(fixed, target=target, calibration=samples)
    for sample in samples:
        assert torch.equal(a.run(*sample), b.run(*sample))


# Name -> choices, calls of which each has a method, in the methods' order.
SEVERAL = {
    "convolutions": (["x.0=1,4", "x.2=16", "x.3=16,9"], [(1, 16, 16), (1, 16, 9), (4, 16, 16), (4, 16, 9)]),
    "positions": (["words.0=1,2", "words.1=7,max"], [(1, 7), (1, 64), (2, 7), (2, 64)]),
    "pairs": (["y.0=3,7,19"], [(1,), (3,), (9,)]),
    "repeated": (["x.0=17,2"], [(17,), (2,)]),
}


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_sizes_in_one_file(name, target, tmp_path):
    """A method for each; tosaic's runtime chooses, ExecuTorch's user does."""
    import tosaic.executorch.runtime as plugin

    module, program, call, _, _ = program_of(name)
    choices, sizes = SEVERAL[name]
    artifact = tosaic.compile(program, target=target, sizes=choices)
    artifact.save(tmp_path / "m.pte")
    session = held(target, tosaic.load, tmp_path / "m.pte")
    for size in [*reversed(sizes), sizes[-1]]:
        check(module, session, call(*size))
        check(module, artifact, call(*size))
    check(module, session.clone(), call(*sizes[1]))
    values = ["x".join(v) for v in itertools.product(*(c.split("=")[1].split(",") for c in choices))]
    loaded = plugin.load_program(tmp_path / "m.pte")
    for method, size in zip(["forward", *(f"forward_{v}" for v in values[1:])], sizes, strict=True):
        args = call(*size)
        got = loaded.load_method(method).execute(list(args))
        torch.testing.assert_close(got[0], module(*args)[0] if isinstance(module(*args), tuple) else module(*args),
                                   rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128"])
def test_several_sizes_in_integers(target, tmp_path):
    """Each is calibrated with the samples of its size, and gives what its own program gives."""
    module, program, call, _, choice = program_of("convolutions")
    sizes = [(1, 20, 12), (1, 8, 12)]
    samples = [call(*size) for size in sizes * 3]
    both = tosaic.compile(program, target=target, sizes=["x.0=1", "x.2=20,8", "x.3=12"], calibration=samples)
    both.save(tmp_path / "m.pte")
    session = Both(tosaic.load, tmp_path / "m.pte")
    for k, size in enumerate(sizes):
        alone = tosaic.compile(program, target=target, sizes=choice(*size), calibration=samples[k::2])
        for sample in samples[k::2]:
            assert torch.equal(session.run(*sample), alone.run(*sample))
    with refused("no sample has the sizes x 4x3x20x12"):
        tosaic.compile(program, target=target, sizes=["x.0=1,4", "x.2=20", "x.3=12"], calibration=samples)


def test_calls_that_no_method_takes(tmp_path):
    _, program, call, _, _ = program_of("pairs")
    session = tosaic.compile(program, target="tosa-fp", sizes=["x.0=1,3"]).session()
    with refused(r"run.sizes(.|\n)*the sizes 2x3, 5x3; there are forward \(1x3, 3x3\); forward_3 \(3x3, 7x3\)"):
        session.run(*call(2))
    with refused("input 0 is 9x3xf32"):
        session.run(*call(9))
    for sizes, why in ((["x.0=1,1"], "names x.0=1 twice"), (["x.0=1,"], "neither a number nor max"),
                       (["x.0=" + ",".join(map(str, range(65)))], "65 methods, 64 are the most")):
        with refused(why):
            tosaic.compile(program, target="tosa-fp", sizes=sizes)


def test_several_sizes_keep_one_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("runs", torch.zeros(3))

        def forward(self, x):
            self.runs += x.sum(0)
            return x + self.runs

    program = torch.export.export(Counter(), (rows(4),), dynamic_shapes={"x": {0: n}})
    artifact = tosaic.compile(program, target="tosa-fp", sizes=["x.0=2,4"])
    session, eager = Both(artifact.session), Counter()
    for size in (2, 4, 2):
        x = rows(size)
        torch.testing.assert_close(session.run(x), eager(x))
    torch.testing.assert_close(session.state_dict()["runs"], eager.runs)


def test_states_outlive_a_change_of_size():
    module = Running()
    session = Both(tosaic.Program.of(torch.export.export(module, (rows(4),), dynamic_shapes={"x": {0: n}})).session)
    for i in (4, 2, 9, 4):
        check(module, session, (rows(i),))
    torch.testing.assert_close(session.state_dict()["mean"], module.mean)


def refused(match):
    return pytest.raises(tosaic.Error, match=match)


def test_sizes_that_there_are_not():
    _, program, call, _, _ = program_of("convolutions")
    _, pairs, _, _, _ = program_of("pairs")
    with refused(r"model.dynamic-shape(.|\n)*x\.0 is s\d+, s\d+ in 0..4"):
        tosaic.compile(program, target="tosa-fp")
    for sizes, why in ((["x.0=9", "x.2=8", "x.3=8"], r"x\.0 is 9 \(s\d+\), outside of its range 0..4"),
                       (["x.0=1", "x.2=8"], "x.3 is"), (["z.0=1"], "no dynamic size 'z.0': x.0 is"),
                       (["x.0=1", "x.0=2"], "x.0=1 and x.0=2 do not fit together: x.0 cannot be both"), (["x.0"], "has no ="),
                       (["x.0=-1"], "neither a number nor max"), (["x.0="], "neither a number nor max")):
        with refused(why):
            tosaic.compile(program, target="tosa-fp", sizes=sizes)
    with refused("y.0 is .*, and cannot be 4(.|\n)*choose a size of that form"):
        tosaic.compile(pairs, target="tosa-fp", sizes=["y.0=4"])
    for size in (10**12, 10**30):  # a help about TOSA files was no hint, and 10**30 was no number
        with refused(f"x.0={size}: no dimension of a tensor is larger than 2147483647(.|\n)*smaller size"):
            tosaic.compile(program, target="tosa-fp", sizes=[f"x.0={size}"])
    with refused("other sizes than the chosen ones"):
        tosaic.compile(program, target="tosa-int", sizes=["x.0=4", "x.2=max", "x.3=max"])
    fixed = torch.export.export(nn.ReLU(), (rows(2),))
    with refused("all its sizes are fixed"):
        tosaic.compile(fixed, target="tosa-fp", sizes=["x.0=4"])


def test_calls_of_other_sizes():
    _, program, call, _, _ = program_of("pairs")
    session = tosaic.Program.of(program).session()
    for args, why in (((rows(2), rows(4)), r"y.0 is 4, and has to be 5 = 2\*s\d+ \+ 1, as x.0 is 2"),
                      ((rows(10), rows(21)), "10x3"),
                      ((rows(2)[:, :2], rows(5)[:, :2]), "2x2"), ((rows(2)[0], rows(5)), "input 0 is 3xf32")):
        with refused(why):
            session.run(*args)
    check(Pairs(), session, call(2))


class Running(nn.Module):
    """A state of one size, rows of any."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.mean.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x - self.mean


@pytest.mark.parametrize("make, example, shapes, sizes", [
    (Positions, lambda b, s: torch.randint(0, 32, (b, s)), {0: batch, 1: length}, [(2, 7), (1, 64), (4, 2), (2, 7)]),
    (Running, lambda i: rows(i), {0: n}, [(4,), (9,), (1,), (6,)])])
def test_one_program_for_vulkan_at_every_size(make, example, shapes, sizes, tmp_path):
    torch.manual_seed(3)
    module = make().eval()
    program = torch.export.export(module, (example(*sizes[0]),), dynamic_shapes=(shapes,))
    tosaic.compile(program, target="vulkan").save(tmp_path / "m.pte")
    loaded = tosaic.load(tmp_path / "m.pte")
    for size in sizes:
        check(module, loaded, (example(*size),))


def test_a_size_that_torch_found_to_be_one_number(tmp_path):
    """Torch specialised it and left the call in the program, which nothing knew: aten.sym_size.int."""

    class Pooled(nn.Module):
        def forward(self, x):
            return nn.functional.max_pool1d((x * x.shape[0]).t()[None], 3, 1, 1)[0].t()

    x = torch.randn(11, 4)
    exported = torch.export.export(Pooled(), (x,), dynamic_shapes=({0: Dim.AUTO},), strict=False)
    assert any("sym_size" in str(node.target) for node in exported.graph.nodes)
    tosaic.compile(exported, target="tosa-fp").save(tmp_path / "m.pte")
    torch.testing.assert_close(tosaic.load(tmp_path / "m.pte").run(x), Pooled()(x))


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_rows_that_go_to_one_place(target, tmp_path):
    """The last of them stays, as in eager; SCATTER would leave it open."""

    class Put(nn.Module):
        def forward(self, x, i, v):
            return x.index_put((i,), v), x.index_copy(0, i, v), x.scatter(0, i[:, None].expand(-1, 2), v)

    inputs = torch.randn(5, 2), torch.tensor([1, 3, 1, 1, 0, 3]), torch.randn(6, 2)
    tosaic.compile(torch.export.export(Put(), inputs), target=target).save(tmp_path / "m.pte")
    got = held(target, tosaic.load, tmp_path / "m.pte").run(*inputs)
    for a, b in zip(got, Put()(*inputs), strict=True):
        torch.testing.assert_close(a, b)
