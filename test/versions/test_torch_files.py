# SPDX-License-Identifier: Apache-2.0
"""Programs that PyTorch 2.9 to 2.15 wrote (data/torch-VERSION.tar.xz, by make_programs.py): each is compiled, run, and
compared with what the module answered in that version.
"""
import pathlib
import subprocess
import tarfile

import numpy as np
import pytest

ARCHIVES = {p.name.removesuffix(".tar.xz"): p for p in (pathlib.Path(__file__).parent / "data").glob("*.tar.xz")}
PROGRAMS = ["float", "strict", "decomposed", "pt2e", "attention", "attention_decomposed", "kinds"]
REFUSED = {"dynamic": "model.dynamic-shape"}


@pytest.fixture(scope="module", params=sorted(ARCHIVES))
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(ARCHIVES[request.param]) as file:
        file.extractall(folder)
    assert {p.stem for p in folder.glob("*.pt2")} == {*PROGRAMS, *REFUSED, "buffer", "draft"}
    return folder


def compiled(tosaic, folder, name, target):
    return subprocess.run([tosaic, "compile", folder / f"{name}.pt2", "--target", target, "-o", folder / f"{name}.pte"],
                          capture_output=True, text=True)


def in_order(paths):
    return sorted(paths, key=lambda p: int(p.name.split(".")[3]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_what_the_module_gave(tosaic, written, name):
    target = "tosa-int" if name == "pt2e" else "tosa-fp"
    made = compiled(tosaic, written, name, target)
    assert made.returncode == 0, made.stderr
    assert "warning" not in made.stderr, made.stderr
    calls = {p.name.split(".")[1] for p in written.glob(f"{name}.*.out.0.npy")}
    assert calls
    for call in calls:
        inputs = [x for p in in_order(written.glob(f"{name}.{call}.in.*.npy")) for x in ("--input", p)]
        ran = subprocess.run([tosaic, "run", written / f"{name}.pte", *inputs, "--output-dir", written / f"{name}.{call}"],
                             capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        wanted = [np.load(p) for p in in_order(written.glob(f"{name}.{call}.out.*.npy"))]
        assert len(wanted) == len(list((written / f"{name}.{call}").iterdir()))
        for i, expected in enumerate(wanted):
            got = np.load(written / f"{name}.{call}" / f"output_{i}.npy")
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compiled_yet_is_read(tosaic, written, name):
    made = compiled(tosaic, written, name, "tosa-fp")
    assert made.returncode == 1 and f"error[{REFUSED[name]}]" in made.stderr
    read = subprocess.run([tosaic, "inspect", written / f"{name}.pt2"], capture_output=True, text=True)
    assert read.returncode == 0 and not read.stderr
    assert "(s77 in 2..16)x4xf32" in read.stdout, read.stdout


def test_dynamic_sizes_run_and_compile_at_chosen_ones(tosaic, written):
    calls = sorted({p.name.split(".")[1] for p in written.glob("dynamic.*.out.0.npy")})
    assert len(calls) == 3
    for call in calls:
        inputs = [x for p in in_order(written.glob(f"dynamic.{call}.in.*.npy")) for x in ("--input", p)]
        rows = np.load(inputs[1]).shape[0]
        made = subprocess.run([tosaic, "compile", written / "dynamic.pt2", "--target", "tosa-fp", "--sizes", f"x.0={rows}",
                               "-o", written / "dynamic.pte"], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        for program in ("dynamic.pt2", "dynamic.pte"):
            ran = subprocess.run([tosaic, "run", written / program, *inputs, "--output-dir", written / f"{program}.{call}"],
                                 capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            for i, path in enumerate(in_order(written.glob(f"dynamic.{call}.out.*.npy"))):
                np.testing.assert_allclose(np.load(written / f"{program}.{call}/output_{i}.npy"), np.load(path), rtol=1e-6)


def test_buffers_are_kept_from_call_to_call(tosaic, written):
    made = compiled(tosaic, written, "buffer", "tosa-fp")
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    calls = sorted({p.name.split(".")[1] for p in written.glob("buffer.*.out.0.npy")})
    assert len(calls) == 3
    for call in calls:
        inputs = [x for p in in_order(written.glob(f"buffer.{call}.in.*.npy")) for x in ("--input", p)]
        ran = subprocess.run([tosaic, "run", written / "buffer.pte", *inputs, "--states", written / "states",
                              "--output-dir", written / f"buffer.{call}"], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        for i, path in enumerate(in_order(written.glob(f"buffer.{call}.out.*.npy"))):
            np.testing.assert_allclose(np.load(written / f"buffer.{call}" / f"output_{i}.npy"), np.load(path), rtol=1e-6)
    assert np.load(written / "states" / "steps.npy") == 3


def test_assumptions_of_a_draft_are_said(tosaic, written):
    made = compiled(tosaic, written, "draft", "tosa-fp")
    assert made.returncode == 0 and "warning[pt2.unchecked-assumption]" in made.stderr
    assert "make_programs.py" in made.stderr and "if x.sum() > 0" in made.stderr, made.stderr
    asserted = [int(part) for part in written.name.removeprefix("torch-2.").split(".")[:1]] >= [12]
    assert ("Eq(u0, 1)" in made.stderr) == asserted, made.stderr
