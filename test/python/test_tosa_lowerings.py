# SPDX-License-Identifier: Apache-2.0
"""TOSA's operators as functions, and lowerings of custom operators that are written in them."""
import pathlib
import random
import sys

import pytest
import torch
import torch.nn.functional as F

import tosaic
from tosaic import _core, tosa

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import reference_model  # noqa: E402

pytestmark = pytest.mark.usefixtures("lowerings")
ROWS = {row.name: row for row in _core.tosa_operators()}


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- the functions

def alike(row):
    """Floats, all of one type, and nothing else."""
    return hasattr(torch, row.name) and {"in_out": "f32"} in row.types and "*" not in row.schemas[0] and all(
        o.type == "in_out" and not o.list and not o.constant for o in row.operands)


@pytest.mark.parametrize("name", [n for n in ROWS if alike(ROWS[n])])
def test_operators_that_pytorch_has_too(name):
    """Of one or two tensors, on values that all are defined for."""
    parameters, theirs = ROWS[name].operands, getattr(torch, name)
    x, y = drawn(2, 3, 4).abs() + 0.1, drawn(2, 1, 4, seed=1).abs() + 0.1
    given = (x, y)[: len(parameters)]
    torch.testing.assert_close(getattr(tosa, name)(*given), theirs(*given), rtol=1e-6, atol=1e-6)


def test_every_operator_is_one_of_pytorchs_with_a_signature():
    assert {"clamp", "conv2d", "rescale", "table", "fft2d", "scatter"} < ROWS.keys()
    assert not {"const", "cond_if", "custom", "variable_read"} & ROWS.keys()  # no call of tensors alone
    for name in ROWS:
        operator = getattr(tosa, name)
        assert name in dir(tosa) and operator.__doc__.startswith(ROWS[name].summary)
        assert [p for p in operator.__signature__.parameters][: len(ROWS[name].operands)] == [
            o.name for o in ROWS[name].operands]
        assert all(_core.knows(f"tosaic.{name}.{overload}") for overload in ("default", "integer"))
    assert tosa.op("CLZ", torch.tensor([1], dtype=torch.int32)).item() == 31


def test_numbers_are_constants_of_the_right_type():
    x = torch.tensor([[-7, 100]], dtype=torch.int8)
    assert tosa.negate(x, 1, 0).tolist() == [[8, -99]]
    assert tosa.pad(x, [0, 0, 1, 0], 5).tolist() == [[5, -7, 100]]
    assert tosa.table(x, list(range(127, -129, -1))).tolist() == [[6, -101]]
    assert tosa.mul(x.int(), x.int(), 1).tolist() == [[25, 5000]]
    assert tosa.cast(x, result=torch.float16).dtype == torch.float16


def test_wrong_calls():
    x, whole = drawn(2, 3), torch.ones(2, 3, dtype=torch.int32)

    def refused(code, body):
        with pytest.raises(tosaic.Error) as caught:
            body()
        assert caught.value.code == code and "help: " in str(caught.value), caught.value
        return str(caught.value)

    assert "do you mean conv2d" in refused("tosa.operator", lambda: tosa.op("conv_2d", x))
    with pytest.raises(AttributeError, match="do you mean clamp"):
        tosa.clam
    assert "TOSA takes i32" in refused("tosa.clz.type", lambda: tosa.clz(x))
    assert "f32 next to input1 i32" in refused("tosa.add.type", lambda: tosa.add(whole, x))
    refused("tosa.add.rank-mismatch", lambda: tosa.add(x, x[0]))
    refused("tosa.add.broadcast", lambda: tosa.add(x, x[:, :2]))
    refused("tosa.clamp.bounds-order", lambda: tosa.clamp(x, min_val=1, max_val=0))
    refused("tosa.cast.type", lambda: tosa.cast(x, result=torch.int64))
    refused("tosa.reshape.element-count", lambda: tosa.reshape(x, [7]))
    refused("tensor.dtype", lambda: tosa.abs(x.to(torch.complex64)))
    with pytest.raises(TypeError, match="input1 is a float, not a tensor"):
        tosa.exp(3.0)
    with pytest.raises(TypeError, match="missing a required argument: 'max_val'"):
        tosa.clamp(x, min_val=0)
    with pytest.raises(TypeError, match="nothing says the dtype of multiplier"):
        tosa.rescale(whole, 1 << 30, 30, 0, 0, scale32=True, rounding_mode="single_round", per_channel=False,
                     input_unsigned=False, output_unsigned=False, result=torch.int8)


def test_calls_by_chance_give_results_or_reasons():
    """What no rule checks would be read or written beyond its end: a crash, or a report in the sanitized build."""
    chance, outcomes = random.Random(5), {"refused": 0, "given": 0}
    words = {"nan_mode": ["propagate", "ignore", "x"], "rounding_mode": ["single_round", "double_round"],
             "mode": ["nearest", "bilinear"]}

    def argument(parameter, types, rank):
        kind = parameter.annotation
        if kind.startswith("Tensor"):
            dtype = getattr(torch, types.get(parameter.name) or chance.choice(["float32", "int8", "int32", "bool"]))
            sizes = [chance.choice([1, 1, 2, 3]) for _ in range(chance.choice([rank, rank, rank, rank, chance.randint(0, 5)]))]
            if parameter.name in types.get("constants", ()):
                sizes = [chance.choice([1, 1, 1, 3])]
            tensor = torch.zeros(sizes, dtype=dtype) if chance.random() < 0.5 else torch.ones(sizes, dtype=dtype)
            return [tensor] * chance.randint(0, 3) if kind == "Tensor[]" else tensor
        if kind == "int[]":
            return [chance.choice([0, 1, 1, 2, 3, -1, 7]) for _ in range(chance.choice([rank, rank, 2, 4, 1]))]
        return {"int": chance.randint(-2, 4), "bool": chance.random() < 0.5, "Scalar": chance.choice([0, 1, 2.5, -3]),
                "str": chance.choice(words.get(parameter.name, ["x"])),
                "ScalarType": chance.choice([torch.int32, torch.float32, torch.float16]),
                "ScalarType?": chance.choice([None, torch.int32, torch.int8, torch.float32])}[kind]

    names = {ours: name for name, ours in tosaic._tensors._NUMPY_NAMES.items()}
    for name, row in ROWS.items():
        for _ in range(60):
            bound = chance.choice(row.types)
            types = {o.name: names.get(bound.get(o.type, o.type)) for o in row.operands if o.type != "shape"}
            types["constants"] = [o.name for o in row.operands if o.constant]
            rank = chance.randint(1, 4)
            parameters = getattr(tosa, name).__signature__.parameters.values()
            given = {p.name: argument(p, types, rank) for p in parameters}
            try:
                getattr(tosa, name)(**given)
                outcomes["given"] += 1
            except (tosaic.Error, TypeError, IndexError):  # the last: PyTorch, of an empty list
                outcomes["refused"] += 1
    assert outcomes["given"] > 800, outcomes


# ---- lowerings

@torch.library.custom_op("tosaic_tosa_test::bump", mutates_args=())
def bump(x: torch.Tensor, width: float = 1.0) -> torch.Tensor:
    near = F.max_pool2d(x, 3, 1, 1)
    return torch.erf(x.clamp(-width, 2)).cos() + torch.maximum(near, F.pad(x, (1, 1), value=0.25)[..., 1:-1])


@bump.register_fake
def _(x, width=1.0):
    return torch.empty_like(x)


def lower_bump():
    @tosaic.lowering(bump)
    def lowered_bump(x, width):
        wave = tosa.cos(tosa.erf(tosa.clamp(x, min_val=-width, max_val=2)))
        near = tosa.transpose(x, perms=[0, 2, 3, 1])
        near = tosa.max_pool2d(near, kernel=[3, 3], stride=[1, 1], pad=[1, 1, 1, 1])
        padded = tosa.pad(x, [0, 0, 0, 0, 0, 0, 1, 1], 0.25)
        same = tosa.slice(padded, start=[0, 0, 0, 1], size=list(x.shape))
        return wave + tosa.maximum(tosa.transpose(near, perms=[0, 3, 1, 2]), same)  # PyTorch's among them


class Bumped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 3)

    def forward(self, x):
        return self.last(torch.ops.tosaic_tosa_test.bump(self.first(x), 0.8))


SAMPLES = [drawn(1, 3, 12, 12, seed=i) for i in range(16)]


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "tosa-int", "ethos-u85-256", "ethos-u55-128"])
def test_floats(target, tmp_path):
    """One delegate; in integer programs tables and quantised values follow from TOSA's rows."""
    lower_bump()
    model = Bumped().eval()
    assert all(v.taken for v in tosaic.supports(model, SAMPLES[0], target))
    artifact = tosaic.compile(model, SAMPLES[0], target, calibration=SAMPLES)
    assert artifact.summary.delegates == 1 and all(n.taken for n in artifact.summary.nodes)
    said = [m.message for m in artifact.summary.messages if m.code == "model.decomposed"]
    assert len(said) == 1 and f"lowered_bump ({__file__}:" in said[0]
    with torch.no_grad():
        wanted = model(SAMPLES[1])
    if target in ("tosa-fp", "vgf"):
        torch.testing.assert_close(artifact.run(SAMPLES[1]), wanted, rtol=1e-5, atol=1e-6)
    else:
        assert (artifact.run(SAMPLES[1]) - wanted).abs().max() < 0.03 * wanted.abs().max()
    if target == "tosa-fp":
        assert artifact.summary.nodes[1].op == "tosaic_tosa_test.bump.default"
        artifact.save(tmp_path / "bumped.tosa")
        got = reference_model.run(tmp_path / "bumped.tosa", [SAMPLES[1].numpy()], tmp_path)
        torch.testing.assert_close(torch.from_numpy(got[0]), wanted, rtol=1e-5, atol=1e-5)


@torch.library.custom_op("tosaic_tosa_test::qlinear", mutates_args=())
def qlinear(x: torch.Tensor, weight: torch.Tensor, zero: int, multiplier: int, shift: int) -> torch.Tensor:
    sums = (x.double() - zero) @ weight.double().T
    return torch.floor((sums * multiplier + 2 ** (shift - 1)) / 2**shift).clamp(-128, 127).to(torch.int8)


@qlinear.register_fake
def _(x, weight, zero, multiplier, shift):
    return x.new_empty(x.shape[0], weight.shape[0])


def lower_qlinear():
    @tosaic.lowering(qlinear)
    def lowered_qlinear(x, weight, zero, multiplier, shift):
        (rows, width), count = x.shape, weight.shape[0]
        sums = tosa.conv2d(tosa.reshape(x, [1, rows, 1, width]), tosa.reshape(weight, [count, 1, 1, width]),
                           torch.zeros(count, dtype=torch.int32), zero, 0, pad=[0, 0, 0, 0], stride=[1, 1],
                           dilation=[1, 1], acc_type=torch.int32, local_bound=False)
        codes = tosa.rescale(sums, torch.tensor([multiplier], dtype=torch.int32), shift, 0, 0, scale32=True,
                             rounding_mode="single_round", per_channel=False, input_unsigned=False,
                             output_unsigned=False, result=torch.int8)
        return tosa.reshape(codes, [rows, count])


class Codes(torch.nn.Module):
    """Integers with scales of the operator's own; `real`: as PT2E says them."""

    def __init__(self, real):
        super().__init__()
        self.real = real
        self.register_buffer("weight", torch.randint(-127, 128, (6, 8), generator=torch.Generator().manual_seed(3)).to(torch.int8))

    def forward(self, x):
        if self.real:
            x = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
        y = torch.ops.tosaic_tosa_test.qlinear(x, self.weight, 3, 1 << 30, 38)
        return torch.ops.quantized_decomposed.dequantize_per_tensor(y, 0.7, 0, -128, 127, torch.int8) if self.real else y


@pytest.mark.parametrize("real", [False, True], ids=["codes", "pt2e"])
@pytest.mark.parametrize("target", ["tosa-int", "vgf", "ethos-u85-256", "ethos-u55-128"])
def test_integers_are_those_that_are_written(target, real):
    import torchao.quantization.pt2e  # noqa: F401  its operators

    lower_qlinear()
    x = drawn(5, 8) * 4 if real else torch.randint(-128, 128, (5, 8), generator=torch.Generator().manual_seed(4)).to(torch.int8)
    artifact = tosaic.compile(Codes(real), x, target)
    assert artifact.summary.delegates == 1 and {n.op: n.taken for n in artifact.summary.nodes}[
        "tosaic_tosa_test.qlinear.default"]
    assert torch.equal(artifact.run(x), Codes(real)(x))


@pytest.mark.filterwarnings("ignore::tosaic.CompileWarning")
def test_what_a_target_does_not_take_runs_outside_the_delegate():
    lower_qlinear()
    x = torch.randint(-128, 128, (5, 8), generator=torch.Generator().manual_seed(4)).to(torch.int8)
    verdict, = tosaic.supports(Codes(False), x, "tosa-fp")
    assert not verdict.taken and "for targets with PRO-INT" in verdict.reason.reason
    assert torch.equal(tosaic.compile(Codes(False), x, "tosa-fp").run(x), Codes(False)(x))

    @tosaic.lowering(bump)
    def lowered(x, width):  # a product of two tensors has no integer form by itself
        return tosa.mul(x, tosa.abs(x), 0)

    product = tosaic.compile(Bumped().eval(), SAMPLES[0], "tosa-int", calibration=SAMPLES)
    assert [n.taken for n in product.summary.nodes] == [True, False, True]
    first, last = Bumped().first, Bumped().last
    with torch.no_grad():
        y = first(SAMPLES[2])
        wanted = last(y * y.abs())
    assert (product.run(SAMPLES[2]) - wanted).abs().max() < 0.03 * wanted.abs().max()


def test_lowerings_that_go_wrong():
    def compiled(body, code="lowering.failed"):
        def lowered(x, width):
            return body(x)

        tosaic.lowering(bump, replace=True)(lowered)
        with pytest.raises(tosaic.Error) as caught:
            tosaic.compile(Bumped().eval(), SAMPLES[0], "tosa-fp")
        line = f"{__file__}:{Bumped.forward.__code__.co_firstlineno + 1}: error["
        assert caught.value.code == code and str(caught.value).startswith(line) and "help: " in str(caught.value)
        assert "test_tosa_lowerings.py:" in str(caught.value).partition("lowered (")[2]
        return str(caught.value)

    assert "has no operator 'clampp'" in compiled(lambda x: tosa.op("clampp", x))
    assert "has no operator 'clampp'" in compiled(lambda x: tosa.clampp(x))
    wrong = compiled(lambda x: tosa.add(x, tosa.reshape(x, [400])))
    assert "error[tosa.add.rank-mismatch]" in wrong and "tosa.add(x, tosa.reshape" in wrong
    assert "error[tosa.clz.type]" in compiled(lambda x: tosa.clz(x))
    assert "ZeroDivisionError" in compiled(lambda x: tosa.exp(x / (1 // 0)))
    assert "int32[1, 4, 10, 10]" in compiled(lambda x: tosa.cast(x, result=torch.int32), "lowering.result")
    assert "float32[1, 4, 10, 9]" in compiled(lambda x: tosa.slice(x, [0, 0, 0, 0], [1, 4, 10, 9]), "lowering.result")
    assert "float32[1, 4, 10, 10], float32[1, 4, 10, 10]" in compiled(lambda x: (tosa.exp(x), x), "lowering.result")


def test_a_module_may_call_them(tmp_path):
    class Direct(torch.nn.Module):
        def forward(self, x):
            return tosa.resize(x, [4, 2, 4, 2], [-1, -1], [1, 1], mode="nearest")

    x = drawn(1, 3, 4, 2)
    torch.export.save(torch.export.export(Direct(), (x,)), tmp_path / "direct.pt2")
    got = tosaic.compile(tmp_path / "direct.pt2", target="tosa-fp").run(x)
    assert torch.equal(got, x.repeat_interleave(2, 1).repeat_interleave(2, 2))


def test_sizes_must_be_numbers():
    class Alone(torch.nn.Module):
        def forward(self, x):
            return torch.ops.tosaic_tosa_test.bump(x)

    lower_bump()
    dynamic = torch.export.export(Alone(), (SAMPLES[0],), dynamic_shapes=({2: torch.export.Dim("rows", min=5, max=64)},))
    with pytest.raises(tosaic.Error) as caught:
        tosaic.Program.of(dynamic)
    assert caught.value.code == "lowering.failed" and "known when the program runs" in str(caught.value)


def test_the_example(tmp_path, monkeypatch):
    import runpy

    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(pathlib.Path(__file__).parents[2] / "examples" / "custom_operator" / "bit_width.py"), run_name="__main__")
    assert (tmp_path / "bit_width.pte").stat().st_size > 0
