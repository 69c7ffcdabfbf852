# SPDX-License-Identifier: Apache-2.0
"""Loops that data end and branches that cost much: as the program's own jumps, and inside a delegate as TOSA's."""

import os
import pathlib
import sys

import numpy as np
import pytest
import torch
import tosaic
from executors import Both, held
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

pytestmark = pytest.mark.filterwarnings("ignore")
leaves = torch.utils._pytree.tree_leaves
LOOPS = "TOSA-1.0+FP+INT+controlflow"


def counter():
    return torch.zeros((), dtype=torch.int64)


class Settling(nn.Module):
    """A closure over weights, an int64 counter, carried tensors that are exchanged, one that is an input as well."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x, y):
        def goes_on(i, x, y):
            return ((x - y).abs().max() > 0.3) & (i < 40)

        def turn(i, x, y):
            return i + 1, y.clone(), (torch.tanh(self.a(x)) + y) * 0.5

        i, a, b = while_loop(goes_on, turn, (counter(), x, y))
        return i, a + x, b


class Exchanged(nn.Module):
    """Nothing but copies: a turn's results are what it was given, in another order."""

    def forward(self, a, b, n):
        return while_loop(lambda i, a, b: (i > 0).all(), lambda i, a, b: (i - 1, b.clone(), a.clone()), (n, a, b))


class Nested(nn.Module):
    """A loop in a branch in a loop; the inner one counts in floats."""

    def forward(self, x, n):
        def inner(x):
            start = torch.zeros((1,))
            return while_loop(lambda j, x: j.sum() < 3, lambda j, x: (j + 1, x * 1.1 + 0.1), (start, x))[1]

        def turn(i, x):
            return i + 1, torch.cond(x.sum() > 2, inner, lambda x: x + 1, (x,))

        return while_loop(lambda i, x: i < n, turn, (counter(), x))


class Costly(nn.Module):
    """Branches that are not computed in vain, before and behind what is delegated."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)

    def forward(self, x, flag):
        y = torch.cond(flag, lambda x: self.a(x).relu(), lambda x: self.b(x).sigmoid(), (x.relu(),))
        return y.mean((2, 3)), y


class LooksUp(nn.Module):
    """Indices that are right only where the branch is taken."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(10, 4))

    def forward(self, i):
        return torch.cond((i < 10).all(), lambda i: self.w[i] + 1, lambda i: torch.zeros(3, 4), (i,))


class HandedOn(nn.Module):
    """Branches that give an input, a constant, and the same thing twice."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(256, 4096)

    def forward(self, x):
        def yes(x):
            y = self.a(x).sum(1, keepdim=True) * x
            return y, y.clone(), x.clone(), torch.ones(1, 256)

        return torch.cond(x.mean() > 0, yes, lambda x: (x.clone(), x - 1, x * 2, x.clone()), (x,))


MODELS = {
    "settling": (Settling, lambda i: (torch.randn(2, 4) * 2, torch.randn(2, 4) + i)),
    "exchanged": (Exchanged, lambda i: (torch.randn(3), torch.randn(3), torch.tensor(i))),
    "nested": (Nested, lambda i: (torch.rand(3) * (i % 3), torch.tensor(i))),
    "costly": (Costly, lambda i: (torch.randn(1, 8, 32, 32), torch.tensor(i % 2 == 0))),
    "looks_up": (LooksUp, lambda i: (torch.tensor([1, 2, 3 + 5 * i]),)),
    "handed_on": (HandedOn, lambda i: (torch.randn(1, 256) + (i % 2) - 0.5,)),
}


def export(name):
    make, inputs = MODELS[name]
    torch.manual_seed(2)
    module, calls = make().eval(), [inputs(i) for i in range(6)]
    with torch.no_grad():
        wanted = [leaves(module(*c)) for c in calls]
        return torch.export.export(module, calls[0], strict=False), calls, wanted


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return request.param, *export(request.param)


def check(run, calls, wanted, atol=1e-5):
    for call, expected in zip(calls, wanted):
        for a, b in zip(expected, leaves(run(*(t.clone() for t in call))), strict=True):
            torch.testing.assert_close(torch.as_tensor(b), a, rtol=1e-4, atol=atol)


def in_executorch(path):
    import executorch.kernels.quantized  # noqa: F401  its kernels at the boundary of delegates
    import tosaic.executorch.runtime

    method = tosaic.executorch.runtime.load_program(path).load_method("forward")
    return lambda *call: method.execute(list(call))


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_floats_here_and_in_executorch(model, target, tmp_path):
    name, program, calls, wanted = model
    artifact = tosaic.compile(program, target=target)
    assert not any(n.taken for n in artifact.summary.nodes if n.op.startswith("higher_order"))
    check(held(target, artifact.session).run, calls, wanted, 1e-4)
    artifact.save(tmp_path / "m.pte")
    check(in_executorch(tmp_path / "m.pte"), calls, wanted, 1e-4)


def test_program_itself_runs(model):
    name, program, calls, wanted = model
    check(Both(tosaic.Program.of(program).session).run, calls, wanted)


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128"])
def test_integers(model, target, tmp_path):
    """Each body has scales of its own, from every turn; counters and what ends a loop are exact."""
    name, program, calls, wanted = model
    if name == "exchanged":
        with pytest.raises(tosaic.Error, match="target.nothing-delegated"):
            tosaic.compile(program, target=target, calibration=calls)
        return
    artifact = tosaic.compile(program, target=target, calibration=calls)
    session = Both(artifact.session)
    got = [leaves(session.run(*c)) for c in calls]
    if name == "settling":  # a turn more or less
        for a, b in zip(wanted, got):
            assert abs(int(a[0]) - int(b[0])) <= 1
        keep = [i for i, (a, b) in enumerate(zip(wanted, got)) if a[0] == b[0]]
        assert len(keep) >= 4
        calls, wanted, got = ([x[i] for i in keep] for x in (calls, wanted, got))
    for k in range(len(wanted[0])):
        a, b = (torch.cat([r[k].double().flatten() for r in results]) for results in (wanted, got))
        assert (a - b).norm() <= a.norm() / 20, k
    if target == "tosa-int":
        artifact.save(tmp_path / "m.pte")
        check(in_executorch(tmp_path / "m.pte"), calls, got, 1e-6)


@pytest.mark.parametrize("name", ["settling", "nested", "costly", "looks_up", "handed_on"])
def test_inside_a_delegate(name, tmp_path):
    """As COND_IF and WHILE_LOOP where the target says so, alone and in a .pte; int64 is int32 inside."""
    program, calls, wanted = export(name)
    artifact = tosaic.compile(program, target="tosa-fp", tosa_spec=LOOPS)
    assert all(n.taken for n in artifact.summary.nodes) and artifact.summary.delegates == 1
    check(Both(artifact.session).run, calls, wanted, 1e-4)


class Plain(nn.Module):
    """Of types that TOSA has, for its reference model."""

    def __init__(self):
        super().__init__()
        self.a, self.big = nn.Linear(4, 4), nn.Linear(256, 4096)

    def forward(self, x, y):
        def turn(i, x):
            return i + 1, torch.cond(x.sum() > 1, lambda x: torch.tanh(self.a(x)), lambda x: x + 0.5, (x,))

        i, x = while_loop(lambda i, x: (x.abs().max() > 0.9) | (i.sum() < 3), turn, (torch.zeros(1), x))
        return i, x, *torch.cond(y.sum() > 0, lambda y: (self.big(y).sum(1), y.clone()), lambda y: (y.sum(1), -y), (y,))


def test_reference_model_agrees(tmp_path):
    import reference_model

    torch.manual_seed(3)
    module, calls = Plain().eval(), [(torch.randn(2, 4), torch.randn(1, 256) + i - 1) for i in range(3)]
    with torch.no_grad():
        program, wanted = torch.export.export(module, calls[0], strict=False), [leaves(module(*c)) for c in calls]
    artifact = tosaic.compile(program, target="tosa-fp", tosa_spec=LOOPS, single_delegate=True)
    path = tmp_path / "m.tosa"
    artifact.save(path)
    check(Both(tosaic.load, path).run, calls, wanted, 1e-4)
    for call, expected in zip(calls, wanted):
        for a, b in zip(expected, reference_model.run(path, [np.asarray(t) for t in call], tmp_path), strict=True):
            torch.testing.assert_close(torch.as_tensor(b), a, rtol=1e-4, atol=1e-4)


class Kept(nn.Module):
    """A loop that begins with a buffer, and ends in it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        def turn(i, h):
            return i + 1, h + torch.sigmoid(self.a(x))

        i, h = while_loop(lambda i, h: (h.abs().sum() < 3) & (i < 5), turn, (counter(), self.h.clone()))
        self.h.copy_(h * 0.5)
        return h, i


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "ethos-u55-128"])
def test_states(target):
    torch.manual_seed(1)
    module, xs = Kept().eval(), [torch.randn(1, 4) for _ in range(6)]
    program = torch.export.export(module, (xs[0],), strict=False)
    calibration = {} if target == "tosa-fp" else {"calibration": [(x,) for x in xs]}
    session = Both(tosaic.compile(program, target=target, **calibration).session)
    itself = Both(tosaic.Program.of(program).session)
    with torch.no_grad():
        for x in xs:
            h, i = module(x)
            for run, atol in ((session.run, 1e-5 if target == "tosa-fp" else 0.02), (itself.run, 1e-5)):
                got, turns = run(x)
                torch.testing.assert_close(got, h, rtol=0, atol=atol)
                assert turns == i


def test_sizes():
    class Growing(nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.sum() < 20, lambda x: (x * 1.5,), (x,))[0]

    n = torch.export.Dim("n", min=2, max=8)
    program = torch.export.export(Growing(), (torch.ones(3, 2),), dynamic_shapes=({0: n},), strict=False)
    session = Both(tosaic.Program.of(program).session)
    for size in (2, 5):
        x = torch.rand(size, 2) + 0.1
        torch.testing.assert_close(session.run(x), Growing()(x))
    x = torch.rand(4, 2) + 0.1
    torch.testing.assert_close(tosaic.compile(program, target="tosa-fp", sizes=["x.0=4"]).run(x), Growing()(x))


@pytest.mark.parametrize("way", ["itself", "tosa-fp", "inside", "calibrated"])
def test_loop_without_end(way, monkeypatch):
    class Endless(nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.sum() < 9, lambda x: (x * 1.0,), (x,))[0]

    monkeypatch.setenv("TOSAIC_LOOP_LIMIT", "100")
    x = torch.ones(3)
    program = torch.export.export(Endless(), (x,), strict=False)
    ends = pytest.raises(tosaic.Error, match="run.loop-limit(.|\n)*within 100 iterations(.|\n)*TOSAIC_LOOP_LIMIT")
    if way == "calibrated":
        with ends:
            tosaic.compile(program, target="tosa-int", calibration=[(x,)])
        return
    made = tosaic.Program.of(program) if way == "itself" else tosaic.compile(
        program, target="tosa-fp", tosa_spec=LOOPS if way == "inside" else "TOSA-1.0+FP")
    for executor in ("cpu", "interp"):
        with ends:
            made.session(executor=executor).run(x)


@pytest.mark.parametrize("limit", ["abc", "0", "-1", "1e3"])
@pytest.mark.parametrize("way", ["itself", "tosa-fp", "calibrated"])
def test_limit_that_is_none(limit, way, monkeypatch):
    """It was the usual one, silently."""

    class Doubled(nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.sum() < 9, lambda x: (x * 2.0,), (x,))[0]

    monkeypatch.setenv("TOSAIC_LOOP_LIMIT", limit)
    x = torch.ones(3)
    program = torch.export.export(Doubled(), (x,), strict=False)
    with pytest.raises(tosaic.Error, match=f"run.loop-limit(.|\n)*TOSAIC_LOOP_LIMIT is '{limit}'(.|\n)*from 1 on"):
        if way == "itself":
            tosaic.Program.of(program).session().run(x)
        elif way == "calibrated":
            tosaic.compile(program, target="tosa-int", calibration=[(x,)])
        else:
            tosaic.compile(program, target="tosa-fp").run(x)


def test_limit_counts_each_loop_by_itself(monkeypatch):
    """Inner loops begin anew: 9 turns of 9 are below a limit of 9."""

    class Square(nn.Module):
        def forward(self, x, n):
            def turn(i, x):
                return i + 1, while_loop(lambda j, x: j < n, lambda j, x: (j + 1, x + 1), (counter(), x))[1]

            return while_loop(lambda i, x: i < n, turn, (counter(), x))[1]

    monkeypatch.setenv("TOSAIC_LOOP_LIMIT", "9")
    program = torch.export.export(Square(), (torch.ones(2), torch.tensor(3)), strict=False)
    for run in (tosaic.compile(program, target="tosa-fp").run, tosaic.Program.of(program).session().run):
        assert run(torch.zeros(2), torch.tensor(9)).tolist() == [81, 81]
        with pytest.raises(tosaic.Error, match="run.loop-limit"):
            run(torch.zeros(2), torch.tensor(10))


def test_too_many_turns_to_write_out_stay_a_loop():
    class Long(nn.Module):
        def forward(self, x):
            return while_loop(lambda i, x: i < 30000, lambda i, x: (i + 1, x + 1), (counter(), x))

    x = torch.zeros(3)
    program = torch.export.export(Long(), (x,), strict=False)
    i, y = tosaic.compile(program, target="tosa-fp").run(x)
    assert i == 30000 and y.tolist() == [30000] * 3


def test_numbers_that_are_carried_are_refused_by_pytorch():
    class Carried(nn.Module):
        def forward(self, x):
            return while_loop(lambda i, x: i < x.shape[-1], lambda i, x: (i + 1, x + i), (0, x))

    program = torch.export.export(Carried(), (torch.randn(3, 4),), strict=False)
    with pytest.raises(tosaic.Error, match="program.not-serialisable(.|\n)*while_loop(.|\n)*dtype=torch.int64"):
        tosaic.compile(program, target="tosa-fp")


def test_never_taken_is_said():
    program, calls, _ = export("costly")
    artifact = tosaic.compile(program, target="tosa-int", calibration=calls[:1])
    assert "calibrate.not-taken" in {d.code for d in artifact.summary.messages}


def test_their_own_programs():
    """ExecuTorch's branches, maps and scans, as its emitter writes them."""
    from executorch.exir import to_edge

    class Rows(nn.Module):
        def forward(self, x, h):
            last, every = scan(lambda h, row: (torch.tanh(h + row), h * row), h, x, dim=0)
            return last, every, map_rows(lambda row, h: row * 2 + h, x, h)

    _, costly, _ = export("costly")
    for module, calls in ((Rows(), [(torch.randn(5, 2, 4), torch.randn(2, 4)) for _ in range(2)]),
                          (export("costly")[0].module(), costly)):
        with torch.no_grad():
            wanted = [leaves(module(*c)) for c in calls]
            theirs = to_edge(torch.export.export(module, calls[0], strict=False)).to_executorch()
        check(Both(tosaic.load, bytes(theirs.buffer)).run, calls, wanted)
