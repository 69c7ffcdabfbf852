# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of quantised programs inside a delegate that has no floats: quantised values cross the boundaries
of their bodies."""

import pathlib
import sys

import numpy as np
import pytest
import torch
import tosaic
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

pytestmark = pytest.mark.filterwarnings("ignore")
leaves = torch.utils._pytree.tree_leaves
OUTSIDE, FLOATS = "TOSA-1.0+INT+int16", "TOSA-1.0+FP+INT+int16+controlflow"
INSIDE = OUTSIDE + "+controlflow"


def wide():
    return nn.Sequential(nn.Linear(4, 2048), nn.ReLU(), nn.Linear(2048, 4))


class Turns(nn.Module):
    """A branch that costs much in a loop of n turns, closures over weights, what is carried grows."""

    def __init__(self, counter):
        super().__init__()
        self.wide, self.first, self.counter = wide(), nn.Linear(4, 4), counter

    def forward(self, x, n):
        def turn(i, x, kept):
            y = torch.cond(x.sum() > 0, lambda x: self.wide(x).tanh(), lambda x: x * 0.5 - 0.1, (x,))
            return i + 1, y + x * 0.5, kept + y

        x = self.first(x)
        i, y, kept = while_loop(lambda i, x, kept: i < n, turn, (torch.zeros((), dtype=self.counter), x, x * 0.1))
        return i, torch.relu(y) + 1, kept


class Branches(nn.Module):
    """One that gives an input, a constant, numbers of other ranges; after it calls on quantised values, and floats."""

    def __init__(self, _):
        super().__init__()
        self.wide, self.last = wide(), nn.Linear(4, 3)

    def forward(self, x, flag):
        def yes(x):
            y = self.wide(x)
            return y, y * 20, x.clone(), torch.full((80, 4), 7.0)

        a, b, c, d = torch.cond(flag, yes, lambda x: (x - 1, x.clone(), x.sigmoid(), x * 2), (x * 2,))
        return self.last(a), b, c + 1, d


class Apart(nn.Module):
    """A branch of a branch, whose condition is of quantised values; indices that are right only where a branch is
    taken."""

    def __init__(self, _):
        super().__init__()
        self.wide, self.table = wide(), nn.Parameter(torch.randn(10, 4))

    def forward(self, x, i):
        def yes(x, i):
            return torch.cond(x.mean() > 0.1, lambda x: self.wide(x), lambda x: torch.tanh(x), (x,)) + self.table[i]

        return torch.cond((i < 10).all(), yes, lambda x, i: x * 3, (x, i))


MODELS = {
    "turns": (Turns, lambda i: (torch.randn(80, 4) * 0.4 + (i - 2) * 0.1, torch.tensor(i))),
    "branches": (Branches, lambda i: (torch.randn(80, 4), torch.tensor(i % 2 == 0))),
    "apart": (Apart, lambda i: (torch.randn(80, 4) + i % 2, torch.randint(0, 10, (80,)) + 10 * (i % 3 == 2))),
}


def export(name, numbers=torch.int64):
    make, inputs = MODELS[name]
    torch.manual_seed(4)
    module = make(numbers).eval()
    calls = [tuple(t.to(numbers) if t.dtype == torch.int64 else t for t in inputs(i)) for i in range(6)]
    with torch.no_grad():
        wanted = [leaves(module(*c)) for c in calls]
        return torch.export.export(module, calls[0], strict=False), calls, wanted


def decibels(wanted, got):
    wanted, got = (torch.cat([t.double().flatten() for t in tensors]) for tensors in (wanted, got))
    return float(10 * torch.log10((wanted**2).sum() / ((wanted - got)**2).sum().clamp_min(1e-30)))


def same(run, calls, wanted, atol):
    for call, expected in zip(calls, wanted):
        for a, b in zip(expected, leaves(run(*call)), strict=True):
            torch.testing.assert_close(torch.as_tensor(b), a, rtol=1e-5, atol=atol)


def nearly_the_same(run, calls, wanted):
    """RESCALE and floats round halves to other sides: a quantised value of a hundred may be the next one."""
    for call, expected in zip(calls, wanted):
        for a, b in zip(expected, leaves(run(*call)), strict=True):
            off = (a.double() - torch.as_tensor(b).double()).abs()
            assert (off > 1e-5).double().mean() < 0.01 and (not off.any() or decibels([a], [b]) > 80)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("name", MODELS)
def test_in_a_delegate_of_integers(name, scheme, tmp_path):
    """What it computes is what the program's own jumps between the same bodies compute."""
    import executorch.kernels.quantized  # noqa: F401  its kernels at the boundary of delegates
    import tosaic.executorch.runtime

    program, calls, wanted = export(name)

    def compiled(spec):
        return tosaic.compile(program, target="tosa-int", tosa_spec=spec, quantize=scheme, calibration=calls)

    artifact, outside = compiled(INSIDE), compiled(OUTSIDE)
    flow = [n.taken for a in (artifact, outside) for n in a.summary.nodes if n.op.startswith("higher_order")]
    assert flow == [True] * (len(flow) // 2) + [False] * (len(flow) // 2) and artifact.summary.delegates == 1
    with_jumps = [leaves(outside.run(*c)) for c in calls]
    nearly_the_same(artifact.run, calls, with_jumps)
    for k in range(len(wanted[0])):
        assert decibels([r[k] for r in wanted], [r[k] for r in with_jumps]) > (25 if scheme == "int8" else 34), k
    same(compiled(FLOATS).run, calls, with_jumps, 1e-6)
    artifact.save(tmp_path / "m.pte")
    same(tosaic.load(tmp_path / "m.pte", executor="interp").run, calls[:3], [leaves(artifact.run(*c)) for c in calls[:3]], 0)
    method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("forward")
    same(lambda *call: method.execute(list(call)), calls, [leaves(artifact.run(*c)) for c in calls], 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_reference_model_agrees(name, tmp_path):
    """Quantised values in, quantised values out: bit for bit."""
    import reference_model

    program, calls, _ = export(name, torch.int32)
    artifact = tosaic.compile(program, target="tosa-int", tosa_spec=INSIDE, calibration=calls, io="quantized",
                              single_delegate=True)
    path = tmp_path / "m.tosa"
    artifact.save(path)
    session = tosaic.load(path)
    rng = np.random.default_rng(1)
    for _ in range(3):
        given = []
        for info in session.inputs:
            most = {"bool": 2, "i8": 127, "i16": 32767}.get(info.dtype, 2**27 if info.scale else 4)
            codes = rng.integers(-most if info.scale else 0, most, size=info.sizes)
            given.append(codes.astype({"bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32"}[info.dtype]))
        got = [np.asarray(t) for t in leaves(session.run(*(torch.from_numpy(np.array(g)) for g in given)))]
        for a, b in zip(reference_model.run(path, given, tmp_path), got, strict=True):
            np.testing.assert_array_equal(a, b)


class Simple(nn.Module):
    """For PyTorch's quantiser, which knows branches and loops of ExecuTorch's kind."""

    def __init__(self):
        super().__init__()
        self.wide, self.first = wide(), nn.Linear(4, 4)

    def forward(self, x, n, flag):
        x = self.first(x).relu()
        start = torch.zeros((), dtype=torch.int32)
        i, x = while_loop(lambda i, x: i < n, lambda i, x: (i + 1, torch.tanh(x) + x * 0.5), (start, x))
        return i, torch.cond(flag.sum() > 0, lambda x: self.wide(x).relu(), lambda x: x.sigmoid(), (x,)) * 2


@pytest.mark.parametrize("name", MODELS)
def test_asked_without_samples(name):
    program, _, _ = export(name, torch.int32)

    def taken(spec):
        return [v.taken for v in tosaic.supports(program, tosa_spec=spec, quantize="int8") if v.op.startswith("higher_order")]

    assert all(taken(INSIDE)) and not any(taken(OUTSIDE)) and len(taken(INSIDE)) > 0


class Chosen(Simple):
    """Weights of branches, which PT2E quantises in the program around."""

    def forward(self, x, flag):
        x = self.first(x).relu()
        return torch.cond(flag.sum() > 0, lambda x: self.wide(x).relu(), lambda x: x.sigmoid(), (x,)) * 2


def flag(i):
    return torch.tensor([i % 2], dtype=torch.int32)


def by_pt2e(module, calls):
    """Quantised by ExecuTorch's quantiser; what that gives."""
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.specification import TosaSpecification

    quantizer = TOSAQuantizer(TosaSpecification.create_from_string("TOSA-1.0+INT+cf"))
    quantizer.set_global(get_symmetric_quantization_config())
    with torch.no_grad():
        exported = torch.export.export(module, calls[0], strict=False).module(check_guards=False)
        converted = quantizer._quantize_with_submodules(exported, calls)
        return torch.export.export(converted, calls[0], strict=False), [leaves(converted(*c)) for c in calls]


@pytest.mark.parametrize("make", [Simple, Chosen])
def test_bodies_that_pt2e_quantised(make):
    torch.manual_seed(0)
    calls = [(torch.randn(80, 4), *([torch.tensor(i, dtype=torch.int32)] if make is Simple else []), flag(i)) for i in range(6)]
    program, theirs = by_pt2e(make().eval(), calls)
    artifact = tosaic.compile(program, target="tosa-int", tosa_spec=INSIDE)
    flow = [n for n in artifact.summary.nodes if n.op.startswith("higher_order")]
    assert artifact.summary.delegates == 1 and flow and all(n.taken for n in flow)
    assert all(v.taken for v in tosaic.supports(program, tosa_spec=INSIDE) if v.op.startswith("higher_order"))
    outside = tosaic.compile(program, target="tosa-int", tosa_spec=OUTSIDE)
    nearly_the_same(artifact.run, calls, [leaves(outside.run(*c)) for c in calls])
    for run in (artifact.run, tosaic.Program.of(program).session().run):
        got = [leaves(run(*c)) for c in calls]
        assert all(decibels(a[-1:], b[-1:]) > 40 for a, b in zip(theirs, got)), "a code of a hundred"
        assert [int(a[0].flatten()[0]) for a in theirs] == [int(b[0].flatten()[0]) for b in got]


def test_in_executorchs_flow():
    import executorch.kernels.quantized  # noqa: F401
    import tosaic.executorch.runtime
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic.executorch import TosaCompileSpec, TOSAPartitioner

    torch.manual_seed(0)
    calls = [(torch.randn(80, 4), flag(i)) for i in range(4)]
    program, theirs = by_pt2e(Chosen().eval(), calls)
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT+cf"))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert all("quantize_per_tensor" in name for name in partitioner.refused), partitioner.refused
    method = tosaic.executorch.runtime.load_program(edge.to_executorch().buffer).load_method("forward")
    for call, wanted in zip(calls, theirs):
        assert decibels(wanted, method.execute(list(call))) > 40  # a quantised value of a hundred


def test_what_decides_in_floats_stays_outside():
    class Until(nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.abs().max() > 0.3, lambda x: (torch.tanh(x) * 0.9,), (x,))[0]

    class Swapped(nn.Module):
        def forward(self, a, b, n):
            return while_loop(lambda i, a, b: (i > 0).all(), lambda i, a, b: (i - 1, b.clone(), a.clone()), (n, a, b))

    x = torch.randn(4)

    def compiled(spec):
        return tosaic.compile(program, target="tosa-int", tosa_spec=spec, quantize="int8", calibration=[call])

    for module, call, why in ((Until(), (x,), "by which the loop goes on or ends, is a float"),
                              (Swapped(), (x, x + 1, torch.tensor(3)), "'a' is float, and no scale is known for it")):
        program = torch.export.export(module, call, strict=False)
        artifact = compiled(INSIDE)
        (refused,) = (n.reason for n in artifact.summary.nodes if not n.taken and "higher_order" in n.op)
        assert why in str(refused)
        itself = module if isinstance(module, Swapped) else compiled(OUTSIDE).run  # in quantised values, in between
        same(artifact.run, [call], [leaves(itself(*call))], 0)
