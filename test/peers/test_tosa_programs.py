# SPDX-License-Identifier: Apache-2.0
"""Every model, compiled whole to TOSA, against PyTorch and against tosa_reference_model."""
import pathlib

import numpy as np
import pytest
import reference_model

QUICK_FOR_INTERPRETER = 2_000_000  # bytes of .tosa: the interpreter is exact, not fast


def decibels(signal, noise):
    """Signal to noise ratio; the higher the closer."""
    return 10 * np.log10(np.square(signal.astype(np.float64)).sum() / max(np.square(noise.astype(np.float64)).sum(), 1e-30))


def feed(model, tosa):
    """The first example as the file's inputs want it: float as it is, integers over their whole range."""
    taken, _ = reference_model.interface(tosa)
    arrays = model.arrays("input")[0]
    assert len(taken) == len(arrays)
    inputs = []
    for (name, dtype, shape), array in zip(taken, arrays):
        assert dtype is not None and list(array.shape) == shape, name
        if np.issubdtype(dtype, np.integer):
            array = np.round(array / np.abs(array).max() * np.iinfo(dtype).max)
        inputs.append(array.astype(dtype))
    return inputs


def test_reference_model_agrees(model, variant, compiled, tool, tmp_path):
    """Integer files bit for bit, on both executors; float files as closely as float32 sums can be distinguished."""
    _, tosa = compiled(model, *variant)
    inputs = feed(model, tosa)
    expected = reference_model.run(tosa, inputs, tmp_path)
    executors = ["cpu", "interp"] if tosa.stat().st_size < QUICK_FOR_INTERPRETER else ["cpu"]
    for executor in executors:
        found = tool.run(tosa, inputs, tmp_path, "--executor", executor)
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            assert f.dtype == e.dtype and f.shape == e.shape
            if np.issubdtype(e.dtype, np.integer):
                np.testing.assert_array_equal(f, e, err_msg=executor)
            else:
                assert decibels(e, f - e) > 90, executor


def test_weights_of_four_bits(tool, tmp_path):
    """TOSA's int4_t in the file; packed as its standard says, bit for bit."""
    tosa, examples = tmp_path / "digits.tosa", pathlib.Path(__file__).parents[2] / "examples/digits"
    tool("compile", examples / "digits.pt2", "--target", "tosa-int", "--calibrate", examples / "digits_samples.npz",
         "--weights", "int4", "--io", "quantized", "-o", tmp_path / "digits.pte", "--emit", f"tosa={tosa}")
    assert tool("inspect", tosa).count("xi4 = constant <") == 7
    x = np.random.default_rng(0).integers(-128, 128, (1, 1, 8, 8)).astype(np.int8)
    expected = reference_model.run(tosa, [x], tmp_path)
    for executor in ("cpu", "interp"):
        assert np.array_equal(tool.run(tosa, [x], tmp_path, "--executor", executor)[0], expected[0])


def test_integer_program_is_integer(model, compiled):
    for kind in ("raw", "pt2e"):
        taken, given = reference_model.interface(compiled(model, kind, "tosa-int")[1])
        assert all(np.issubdtype(dtype, np.integer) for _, dtype, _ in taken + given)


def test_float_equals_eager(model, compiled, tool, tmp_path):
    for kind in ("raw", "decomposed"):
        pte, _ = compiled(model, kind, "tosa-fp")
        for inputs, outputs in zip(model.arrays("input"), model.arrays("float")):
            for found, expected in zip(tool.run(pte, inputs, tmp_path), outputs, strict=True):
                assert found.shape == expected.shape
                assert decibels(expected, found - expected) > 90, kind


def noise_of_peer(model):
    return [decibels(np.concatenate([f.ravel() for f in floats]),
                     np.concatenate([(q - f).ravel() for q, f in zip(quantised, floats)]))
            for floats, quantised in zip(model.arrays("float"), model.arrays("pt2e"))]


def test_int8_is_as_good_as_pt2e(model, compiled, tool, tmp_path):
    """Our own quantisation, same samples: on average at most 1 dB below the peer's, over the examples."""
    peer = np.mean(noise_of_peer(model))
    for kind in ("raw", "decomposed"):
        pte, _ = compiled(model, kind, "tosa-int")
        ours = []
        for inputs, outputs in zip(model.arrays("input"), model.arrays("float")):
            found = tool.run(pte, inputs, tmp_path)
            ours.append(decibels(np.concatenate([o.ravel() for o in outputs]),
                                 np.concatenate([(f - o).ravel() for f, o in zip(found, outputs, strict=True)])))
        assert np.mean(ours) > peer - 1, f"{kind}: {np.mean(ours):.1f} dB, PT2E {peer:.1f} dB"


def test_pt2e_is_kept(model, compiled, tool, tmp_path):
    """A program quantised by PT2E keeps its scales: the result lies clearly nearer to PyTorch's own execution of it
    than that lies to the float model (rounding differs by a step here and there, no more)."""
    pte, _ = compiled(model, "pt2e", "tosa-int")
    distance = []
    for inputs, outputs in zip(model.arrays("input"), model.arrays("pt2e")):
        found = tool.run(pte, inputs, tmp_path)
        distance.append(decibels(np.concatenate([o.ravel() for o in outputs]),
                                 np.concatenate([(f - o).ravel() for f, o in zip(found, outputs, strict=True)])))
    peer = np.mean(noise_of_peer(model))
    assert np.mean(distance) > peer + 3, f"{np.mean(distance):.1f} dB from PyTorch's, which is {peer:.1f} dB from float"


def test_same_bytes_every_time(model, variant, compiled, tool, tmp_path):
    kind, target = variant
    pte, _ = compiled(model, kind, target)
    calibration = ["--calibrate", model.samples] if target == "tosa-int" and kind != "pt2e" else []
    for threads in (1, 3):
        again = tmp_path / f"{threads}.pte"
        tool("compile", model.program(kind), "--target", target, "-o", again, "--threads", threads, *calibration)
        assert again.read_bytes() == pte.read_bytes(), f"{threads} threads"


@pytest.mark.parametrize("target", ["tosa-int", "tosa-fp"])
def test_int64_at_the_border(target, tool, tmp_path):
    """Classes out: TOSA counts in int32, the program's own int64 is kept, and nothing counts as left behind."""
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 5)

        def forward(self, x):
            return self.linear(x).argmax(1)

    torch.manual_seed(0)
    module, x = Classifier().eval(), torch.randn(4, 8)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "classes.pt2")
    pte = tmp_path / "classes.pte"
    tool("compile", tmp_path / "classes.pt2", "--target", target, "-o", pte, "--require-full-delegation")
    for program in (pte, tmp_path / "classes.pt2"):
        found, = tool.run(program, [x.numpy()], tmp_path)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, module(x).numpy())


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_a_table_is_quantised_whole(scheme, tool, tmp_path):
    """An embedding joins the integer delegate, and rows that no sample chose keep their values."""
    import torch
    torch.manual_seed(0)
    module = torch.nn.Embedding(12, 16).eval()
    with torch.no_grad():
        module.weight[7] *= 4
    few, others = torch.tensor([[0, 1, 2]]), torch.tensor([[7, 3, 11]])
    torch.export.save(torch.export.export(module, (few,)), tmp_path / "table.pt2")
    np.save(tmp_path / "few.npy", few[None].numpy())
    tool("compile", tmp_path / "table.pt2", "--target", "tosa-int", "--calibrate", tmp_path / "few.npy", "--observer", "minmax",
         "--quantize", scheme, "-o", tmp_path / "table.pte", "--require-full-delegation")
    found, = tool.run(tmp_path / "table.pte", [others.numpy()], tmp_path)
    step = 2 * np.abs(module.weight.detach().numpy()).max() / {"int8": 255, "int16x8": 65535}[scheme]
    np.testing.assert_allclose(found, module(others).detach().numpy(), atol=0.51 * step)


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_matmul_of_fp8(dtype, tool, tmp_path):
    """fp8 in, fp16 out: the exact product rounded once, on both executors; the reference model, which rounds every sum to
    fp16, within the standard's bound for that."""
    import ml_dtypes
    (tmp_path / "m.txt").write_text(f"""graph @main(%a: 2x3x40xf32, %b: 2x40x5xf32) -> (%y) {{
  %z: 1x{dtype} = constant [0.0]
  %la: 2x3x40x{dtype} = tosa.cast(%a)
  %lb: 2x40x5x{dtype} = tosa.cast(%b)
  %y: 2x3x5xf16 = tosa.matmul(%la, %lb, %z, %z)
}}
""")
    tool("convert", tmp_path / "m.txt", "-o", tmp_path / "m.tosa")
    random = np.random.default_rng(1)
    inputs = [random.normal(size=size).astype(np.float32) for size in ((2, 3, 40), (2, 40, 5))]
    expected, = reference_model.run(tmp_path / "m.tosa", inputs, tmp_path)
    fp8 = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}[dtype]
    a, b = (x.astype(fp8).astype(np.float64) for x in inputs)
    exact = a @ b
    for executor in "cpu", "interp":
        found, = tool.run(tmp_path / "m.tosa", inputs, tmp_path, "--executor", executor)
        assert found.dtype == expected.dtype == np.float16
        np.testing.assert_allclose(found, exact, rtol=2 ** -11, atol=2 ** -24)
        assert np.all(np.abs(found.astype(float) - expected) <= 40 * 2 ** -11 * (np.abs(a) @ np.abs(b)))


def test_fp8_products_of_pytorch(tool, tosaic, tmp_path):
    """Casts around a matmul run, inside with the extension, else outside; scaled products are refused by name."""
    import subprocess
    import torch

    class Product(torch.nn.Module):
        def __init__(self, scaled):
            super().__init__()
            self.scaled = scaled

        def forward(self, a, b):
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
            if self.scaled:
                one = torch.ones(())
                return torch._scaled_mm(a, b.t().contiguous().t(), one, one, out_dtype=torch.float32)
            return a.float() @ b.float()

    torch.manual_seed(0)
    a, b = torch.randn(16, 32), torch.randn(32, 16)
    torch.export.save(torch.export.export(Product(False), (a, b)), tmp_path / "m.pt2")
    for options, inside in (["--tosa-spec", "TOSA-1.0+FP"], False), ([], True):
        said = tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte", *options)
        assert ("delegated  5 of 5" in said) == inside, said
        found, = tool.run(tmp_path / "m.pte", [a.numpy(), b.numpy()], tmp_path)
        np.testing.assert_allclose(found, Product(False)(a, b).numpy(), rtol=1e-5, atol=1e-5)
    torch.export.save(torch.export.export(Product(True), (a, b)), tmp_path / "m.pt2")
    done = subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "n.pte"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "_scaled_mm" in done.stderr and not (tmp_path / "n.pte").exists()
