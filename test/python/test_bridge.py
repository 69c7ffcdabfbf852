# SPDX-License-Identifier: Apache-2.0
"""Programs with operators that the core does not know: PyTorch's decompositions, and lowerings of custom operators."""
import pathlib
import random
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree

import tosaic
from tosaic import _core, _lowering

pytestmark = pytest.mark.usefixtures("lowerings")
HERE = pathlib.Path(__file__)


def module_of(body):
    class Module(torch.nn.Module):
        def forward(self, *args):
            return body(*args)

    return Module()


# ---- PyTorch's decompositions

class Similar(torch.nn.Module):
    """Two calls that the core does not know, among others that it does."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

    def forward(self, x, y):
        z = F.silu(self.norm(self.head(x)), inplace=True)
        return torch.trapezoid(z, dim=1) + torch.ops.aten.huber_loss(y, z, 0)[:, 0], z.relu_()


SEEDED = torch.Generator().manual_seed(1)


def drawn():
    return torch.randn(4, 8, generator=SEEDED)


X, Y = drawn(), drawn()


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vgf", "ethos-u85-256"])
def test_exactly_the_unknown_calls_are_decomposed(target):
    exported = torch.export.export(Similar().eval(), (X, Y))
    assert not _core.knows("aten.trapezoid.dx") and not _core.knows("aten.huber_loss.default")
    names = [n.name for n in exported.graph.nodes if n.op == "call_function"]
    before = str(exported.graph)
    verdicts = tosaic.supports(exported, target=target)
    assert [v.name for v in verdicts] == names and str(exported.graph) == before
    assert {v.op for v in verdicts} >= {"aten.trapezoid.dx", "aten.linear.default", "aten.layer_norm.default"}
    artifact = tosaic.compile(exported, target=target, calibration=[(X, Y), *[(drawn(), drawn()) for _ in range(15)]])
    assert [n.name for n in artifact.summary.nodes] == names and all(n.taken for n in artifact.summary.nodes)
    said = [m for m in artifact.summary.messages if m.code == "model.decomposed"]
    assert [m.message.split()[0] for m in said] == ["aten.huber_loss.default", "aten.trapezoid.dx"]
    assert all(m.severity == "note" and m.file == __file__ and "trapezoid" in m.text for m in said)
    assert "model.decomposed" in repr(artifact) and "model.decomposed" in repr(tosaic.explain(exported, target=target))
    near = {"rtol": 1e-4, "atol": 1e-5} if target in ("tosa-fp", "vgf") else {"rtol": 0.05, "atol": 0.1}
    for got, wanted in zip(artifact.run(X, Y), exported.module()(X, Y)):
        torch.testing.assert_close(got, wanted, **near)


def test_what_cannot_be_decomposed_stays_with_its_reason():
    exported = torch.export.export(module_of(lambda x: torch.special.bessel_j0(torch.special.entr(x))), (X,))
    verdicts = tosaic.supports(exported, target="tosa-fp")
    assert [(v.op, v.taken) for v in verdicts] == [("aten.special_entr.default", True), ("aten.special_bessel_j0.default", False)]
    assert verdicts[1].reason.code == "aten.unknown-operator"


class Inverted(torch.nn.Module):
    """A camera's matrix and what parametrizations make of weights: no device inverts one, and none has to."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.turn = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(8, 8))
        self.register_buffer("camera", torch.randn(8, 8) + 8 * torch.eye(8))
        self.register_buffer("shift", torch.eye(8), persistent=False)

    def forward(self, x):
        q, r = torch.linalg.qr(self.camera)
        return self.turn(x) @ torch.linalg.inv(self.camera + self.shift), x @ r, q


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vulkan"])
def test_what_weights_alone_give_is_computed_by_pytorch(target):
    model = Inverted().eval()
    artifact = tosaic.compile(model, (X,), target=target, calibration=[(X,)] if target == "tosa-int" else None)
    assert all(n.taken for n in artifact.summary.nodes if n.op in ("aten.linear.default", "aten.matmul.default"))
    share = 0.03 if target == "tosa-int" else 1e-5
    with torch.no_grad():
        for got, wanted in zip(artifact.run(X), model(X), strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=share * float(wanted.abs().max()))


def test_what_a_run_writes_is_no_weight():
    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.eye(8))

        def forward(self, x):
            self.state.add_(1)
            return x @ torch.linalg.inv(self.state)

    assert refusal(lambda: tosaic.compile(Written(), (X,), target="tosa-fp")).code == "pack.unknown-operator"


def test_bodies_of_control_flow_and_dynamic_shapes():
    def body(x):
        return torch.cond(x.sum() > 0, lambda x: torch.heaviside(x, x), lambda x: torch.special.entr(x), (x,))

    exported = torch.export.export(module_of(body), (X,))
    messages = tosaic.Program.of(exported).messages
    assert {m.message.split()[0] for m in messages} == {"aten.heaviside.default", "aten.special_entr.default"}

    model = module_of(lambda x, y: torch.trapezoid(x * y, dim=1))
    exported = torch.export.export(model, (X, Y), dynamic_shapes=(({0: torch.export.Dim("batch", max=8)},) * 2,))
    program = tosaic.Program.of(exported)
    assert [m.code for m in program.messages] == ["model.decomposed"]
    assert refusal(lambda: tosaic.compile(program, target="tosa-fp")).code == "model.dynamic-shape"  # not the bridge's


def unknown_operators():
    """(name, function, arguments) of PyTorch's own samples, by chance but the same in every run: operators whose ATen
    operator the core does not know."""
    from torch.testing._internal.common_methods_invocations import op_db

    def known(info):
        packet = getattr(torch.ops.aten, info.aten_name or info.name, None)
        return packet is None or any(_core.knows(_lowering.name_of(getattr(packet, o))) for o in packet.overloads())

    infos = [i for i in op_db if torch.float32 in i.supported_dtypes("cpu") and not known(i)]
    for info in random.Random(11).sample(infos, len(infos)):
        for sample in info.sample_inputs("cpu", torch.float32):
            if isinstance(sample.input, torch.Tensor) and sample.input.numel() > 1:
                yield info.name, info.op, (sample.input, sample.args, sample.kwargs)
                break


def test_a_sample_of_pytorchs_own_operators():
    found = []
    for name, function, call in unknown_operators():
        leaves, spec = _pytree.tree_flatten(call)
        tensors = tuple(x for x in leaves if isinstance(x, torch.Tensor))

        def body(*given):
            each = iter(given)
            x, args, kwargs = _pytree.tree_unflatten([next(each) if isinstance(l, torch.Tensor) else l for l in leaves], spec)
            return tuple(_pytree.tree_leaves(function(x, *args, **kwargs)))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exported = torch.export.export(module_of(body), tensors)
                program = tosaic.Program.of(exported)
            except Exception:  # what PyTorch does not export, and types that tosaic does not have
                continue
        if {m.code for m in program.messages} != {"model.decomposed"} or not all(
                v.taken for v in tosaic.supports(program, target="tosa-fp")):
            continue
        got = tosaic.compile(program, target="tosa-fp").run(*tensors)
        torch.testing.assert_close(got, body(*tensors), rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m: f"{name}: {m}")
        found.append(name)
        if len(found) == 12:
            return
    raise AssertionError(f"only {found}")


# ---- lowerings of custom operators

@torch.library.custom_op("tosaic_test::gate", mutates_args=())
def gate(x: torch.Tensor, weight: torch.Tensor, scale: float = 1.0, *, soft: bool = True) -> torch.Tensor:
    gated = F.linear(x, weight) * scale
    return x * (gated.sigmoid() if soft else (gated > 0).to(x.dtype))


@gate.register_fake
def _(x, weight, scale=1.0, *, soft=True):
    return torch.empty_like(x)


@torch.library.custom_op("tosaic_test::parts", mutates_args=())
def parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.amax(1), x + torch.tensor([0.5, -0.5]).repeat(4)


@parts.register_fake
def _(x):
    return x.new_empty(x.shape[0]), torch.empty_like(x)


torch.library.define("tosaic_test::two.a", "(Tensor x) -> Tensor")
torch.library.define("tosaic_test::two.b", "(Tensor x, int y) -> Tensor")


def lower_gate():
    @tosaic.lowering("tosaic_test::gate")
    def lowered_gate(x, weight, scale, *, soft):
        y = F.linear(x, weight).mul(scale)
        return x * F.sigmoid(y) if soft else torch.where(y > 0, x, torch.zeros_like(x))


def lower_parts():
    @tosaic.lowering(parts)
    def lowered_parts(x):
        return x.max(dim=1).values, x + torch.tensor([0.5, -0.5] * 4)


class Custom(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first = torch.nn.Linear(8, 8)
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        y = torch.ops.tosaic_test.gate(self.first(x), self.weight, 0.5)
        most, moved = torch.ops.tosaic_test.parts(y)
        return torch.ops.tosaic_test.gate(moved, self.weight, soft=False), most


def test_without_a_lowering_a_custom_operator_stays_outside():
    exported = torch.export.export(Custom().eval(), (X,))
    reasons = {v.op: v.reason for v in tosaic.supports(exported, target="tosa-fp") if not v.taken}
    assert list(reasons) == ["tosaic_test.gate.default", "tosaic_test.parts.default"]
    assert {r.code for r in reasons.values()} == {"aten.unknown-operator"}


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vgf", "ethos-u85-256"])
def test_lowerings_of_custom_operators(target, tmp_path):
    lower_gate()
    lower_parts()
    model = Custom().eval()
    exported = torch.export.export(model, (X,))
    verdicts = tosaic.supports(exported, target=target)
    assert all(v.taken for v in verdicts) and len(verdicts) == 4
    assert "linear" in tosaic.plan(exported, target="tosa-int")
    samples = [drawn() for _ in range(16)]
    artifact = tosaic.compile(model, X, target, calibration=samples)
    assert artifact.summary.delegates == 1
    said = [m.message for m in artifact.summary.messages if m.code == "model.decomposed"]
    assert len(said) == 2 and f"lowered_gate ({__file__}:" in said[0], said
    artifact.save(tmp_path / "custom.pte")
    loaded = tosaic.load(tmp_path / "custom.pte")
    x = samples[3]
    with torch.no_grad():
        wanted = model(x)
    if target in ("tosa-fp", "vgf"):
        torch.testing.assert_close(loaded.run(x), wanted, rtol=1e-4, atol=1e-5)
    else:
        assert (loaded.run(x)[1] - wanted[1]).abs().max() < 0.05 * wanted[1].abs().max()


def test_a_lowering_is_quantised_as_its_calls_are():
    """The same integers as of the model that has the calls themselves."""
    class Plain(torch.nn.Module):
        def __init__(self, custom):
            super().__init__()
            self.first, self.weight = custom.first, custom.weight

        def forward(self, x):
            x = self.first(x)
            return x * F.sigmoid(F.linear(x, self.weight).mul(0.5))

    class Whole(Plain):
        def forward(self, x):
            return torch.ops.tosaic_test.gate(self.first(x), self.weight, 0.5)

    lower_gate()
    samples, base = [drawn() for _ in range(8)], Custom().eval()
    plain = tosaic.compile(Plain(base), X, "tosa-int", calibration=samples)
    whole = tosaic.compile(Whole(base), X, "tosa-int", calibration=samples)
    for x in samples:
        assert torch.equal(plain.run(x), whole.run(x))


def test_lowerings_in_executorchs_flow():
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic.executorch import TosaCompileSpec, TOSAPartitioner

    lower_gate()
    lower_parts()
    model = Custom().eval()
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    edge = to_edge_transform_and_lower(torch.export.export(model, (X,)), partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert not partitioner.refused
    with torch.no_grad():
        torch.testing.assert_close(tosaic.load(bytes(edge.to_executorch().buffer)).run(X), model(X), rtol=1e-4, atol=1e-5)


def refusal(body):
    with pytest.raises(tosaic.Error) as caught:
        body()
    assert str(caught.value).find("help: ") > 0, caught.value
    return caught.value


def test_lowerings_that_are_refused():
    def wrong(operator, function=lambda x, weight, scale, *, soft: x, **how):
        return lambda: tosaic.lowering(operator, **how)(function)

    assert refusal(wrong("tosaic_test::nothing")).code == "lowering.operator"
    assert refusal(wrong("nothing")).code == "lowering.operator"
    assert refusal(wrong("tosaic_test::gate.nothing")).code == "lowering.operator"
    assert refusal(wrong(3)).code == "lowering.operator"
    assert "two.b" in str(refusal(wrong("tosaic_test::two")))
    assert refusal(wrong("aten::relu")).code == "lowering.known"
    short = refusal(wrong("tosaic_test::gate", lambda x: x))
    assert short.code == "lowering.signature" and f"{__file__}:" in str(short)
    wrong(torch.ops.tosaic_test.gate)()
    assert refusal(wrong("tosaic_test::gate.default")).code == "lowering.twice"
    wrong("tosaic_test::gate", replace=True)()


def test_lowerings_that_go_wrong():
    def compiled(function):
        tosaic.lowering("tosaic_test::gate", replace=True)(function)
        return refusal(lambda: tosaic.compile(Custom().eval(), X, "tosa-fp"))

    def raises(x, weight, scale, *, soft):
        return x.reshape(7)

    def numbers(x, weight, scale, *, soft):
        return x * 2 if x.sum() > 0 else x

    def endless(x, weight, scale, *, soft):
        return torch.ops.tosaic_test.gate(x, weight, scale, soft=soft)

    line = f"{__file__}:{Custom.forward.__code__.co_firstlineno + 1}: error["
    for function in (raises, numbers, endless):
        error = compiled(function)
        assert error.code == "lowering.failed" and str(error).startswith(line), error
        assert f"{function.__name__} ({__file__}:" in str(error)
    error = compiled(raises)
    assert "return x.reshape(7)" in str(error) and isinstance(error.__cause__, RuntimeError)
    for function, gives in ((lambda x, weight, scale, *, soft: x.sum(1), "float32[4]"),
                            (lambda x, weight, scale, *, soft: x.to(torch.int32), "int32[4, 8]"),
                            (lambda x, weight, scale, *, soft: (x, x), "float32[4, 8], float32[4, 8]"),
                            (lambda x, weight, scale, *, soft: None, "None")):
        error = compiled(function)
        assert error.code == "lowering.result" and str(error).startswith(line) and gives in str(error), error


def test_the_example(tmp_path, monkeypatch):
    import runpy

    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(HERE.parents[2] / "examples" / "custom_operator" / "snake.py"), run_name="__main__")
    assert (tmp_path / "snake.pte").stat().st_size > 0
