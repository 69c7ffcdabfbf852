# SPDX-License-Identifier: Apache-2.0
"""Every TOSA operator through VGF: our VGF file, and the one that Arm's converter makes of the same TOSA file, give on
our executor the very bits that the TOSA file gives.

Operators, types and inputs are those of the conformance sample: two tests of each operator, or with --all-models all
of them.
"""
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/conformance"))
import run_sample

CONVERTER = pathlib.Path(sys.executable).parent / "model-converter"
SAMPLES = ROOT / "build/conformance"


@pytest.fixture(scope="session")
def tests(request):
    """operator -> folders of its positive tests"""
    name = "all" if request.config.getoption("--all-models") else "slice"
    found = {}
    for test in run_sample.prepare(name, SAMPLES):
        folder = SAMPLES / name / test["folder"]
        if not json.loads((folder / "desc.json").read_text())["expected_failure"]:
            found.setdefault(test["operator"], []).append(folder)
    return found if name == "all" else {operator: folders[:2] for operator, folders in found.items()}


def call(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=120)


def outputs_of(tosaic, program, inputs, folder):
    """Each output's bytes, with its type and shape."""
    done = call(tosaic, "run", program, *inputs, "--output-dir", folder)
    assert done.returncode == 0, f"{program}: {done.stderr}"
    return [f.read_bytes() for f in sorted(folder.glob("output_*.npy"))]


def judge(tosaic, test, folder):
    """What disagrees, or None."""
    description = json.loads((test / "desc.json").read_text())
    tosa = test / description["tosa_file"]
    folder.mkdir()
    ours, theirs = folder / "ours.vgf", folder / "theirs.vgf"
    done = call(tosaic, "convert", tosa, "-o", ours)
    by_sdk = call(CONVERTER, "-i", tosa, "-o", theirs)
    if done.returncode != 0:  # what no instruction exists for, Arm's converter has no words for either
        known = run_sample.NOT_IN_VGF in done.stderr and by_sdk.returncode != 0
        return None if known else f"not converted: {done.stderr}"
    inputs = run_sample.given_inputs(test, description, folder)
    expected = outputs_of(tosaic, tosa, inputs, folder / "tosa")
    if outputs_of(tosaic, ours, inputs, folder / "vgf") != expected:
        return "our VGF file gives other results"
    if by_sdk.returncode == 0 and outputs_of(tosaic, theirs, inputs, folder / "sdk") != expected:
        return "the converter's VGF file gives other results"
    return None


@pytest.mark.parametrize("operator", sorted(run_sample.generation.operators_of_version()))
def test_operator(operator, tests, tosaic, tmp_path):
    verdicts = {test.name: judge(tosaic, test, tmp_path / str(i)) for i, test in enumerate(tests[operator])}
    assert {name: why for name, why in verdicts.items() if why} == {}
