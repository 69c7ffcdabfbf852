# SPDX-License-Identifier: Apache-2.0
"""A stream that computes something else than its graph is found before it is written. Vela's part is taken by a script
that spoils what Vela made."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela

SPOILER = """#!{python}
import pathlib, subprocess, sys
import numpy as np
done = subprocess.run(["vela", *sys.argv[1:]])
folder = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--output-dir="))
for path in pathlib.Path(folder).glob("*_vela.npz"):
    with np.load(path, allow_pickle=True) as file:
        fields = {{name: file[name] for name in file.files}}
    commands = np.frombuffer(fields["cmd_data"].tobytes(), np.uint32).copy()
    zero_points = np.flatnonzero(commands & 0xffff == 0x118)  # SET_OFM_ZERO_POINT
{spoil}
    fields["cmd_data"] = np.array(commands.tobytes(), f"S{{commands.nbytes}}")
    np.savez(path, **fields)
sys.exit(done.returncode)
"""
SPOILS = {
    "last": "commands[zero_points[-1]] += 1 << 16",
    "first": "commands[zero_points[0]] += 1 << 16",
    "unwritten": "commands[zero_points] = 0x109",  # SET_IFM_ZERO_POINT: what the result's register holds nobody knows
    "output": "for name in fields:\n        if name.startswith('output_'): fields[name] = fields[name][:-1]",
}


@pytest.fixture
def compile_digits(tosaic, tmp_path):
    def run(spoil=None, *options):
        if spoil:
            script = tmp_path / "vela"
            script.write_text(SPOILER.format(python=sys.executable, spoil="    " + SPOILS[spoil]))
            script.chmod(0o755)
            options = ["--vela", script, *options]
        return subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", "ethos-u55-128", "--calibrate", DIGITS / "digits_samples.npz",
                               "-o", tmp_path / "digits.pte", "--report", tmp_path / "report.json", *options], capture_output=True, text=True, timeout=300)
    return run


def test_passed(compile_digits, tmp_path):
    done = compile_digits(None, "--io", "quantized")
    assert done.returncode == 0 and re.search(r"self-check passed in [\d.]+ ms", done.stdout), done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["self_check"] == "passed" and report["stages"]["self-check"] > 0


@pytest.mark.parametrize("external", [[], ["--external", "weights=w.ptd", "--external", "commands=w.ptd"]])
def test_a_difference_names_the_operator(compile_digits, tmp_path, monkeypatch, external):
    monkeypatch.chdir(tmp_path)
    done = compile_digits("last", *external)
    assert done.returncode == 1 and "error[self-check.differs]" in done.stderr, done.stdout + done.stderr
    assert "output 0" in done.stderr and "the stream is right up to" in done.stderr and "--no-self-check" in done.stderr
    assert "aten.linear.default" in done.stderr and re.search(r"\.py:\d+: error", done.stderr), done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["vela"]  # nothing was written


def test_an_early_difference(compile_digits):
    said = compile_digits("first").stderr
    assert "error[self-check.differs]" in said and "aten.linear.default" not in said.split("the first that it does not give is")[1], said


def test_without(compile_digits, tmp_path):
    done = compile_digits("last", "--no-self-check")
    assert done.returncode == 0 and "self-check" not in done.stdout + done.stderr and (tmp_path / "digits.pte").exists()
    assert json.loads((tmp_path / "report.json").read_text())["self_check"] is None


def test_what_the_simulator_cannot_tell_is_a_warning(compile_digits, tmp_path):
    done = compile_digits("unwritten")
    assert done.returncode == 0 and "warning[self-check.undecided]" in done.stderr and "ethosu.reset-value" in done.stderr, done.stderr
    assert "self-check passed" not in done.stdout and (tmp_path / "digits.pte").exists()


def test_a_stream_with_fewer_outputs_is_never_written(compile_digits, tmp_path):
    done = compile_digits("output", "--no-self-check")
    assert done.returncode == 1 and "error[vela.interface]" in done.stderr and "1 inputs and gives 0 outputs" in done.stderr, done.stderr
    assert not (tmp_path / "digits.pte").exists()
