# SPDX-License-Identifier: Apache-2.0
"""A stream that computes something else than its graph is found before it is written, and what Vela cannot compile goes
elsewhere. Vela's part is taken by a script that spoils what Vela made."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.by_turns(2)

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela

SPOILER = """#!{python}
import pathlib, subprocess, sys
import numpy as np
network = pathlib.Path(sys.argv[1]).read_bytes() if len(sys.argv) > 2 else b""
bad = all(name in network for name in {when})
if bad and {fails}:
    sys.exit("RuntimeError: this cannot be compiled")
done = subprocess.run(["vela", *sys.argv[1:]])
folder = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--output-dir="))
for path in pathlib.Path(folder).glob("*_vela.npz") if bad else []:
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
    "fails": "",
    "output": "for name in fields:\n        if name.startswith('output_'): fields[name] = fields[name][:-1]",
}


@pytest.fixture
def compile_digits(tosaic, tmp_path):
    def run(spoil=None, *options, when=()):
        if spoil:
            script = tmp_path / "vela"
            script.write_text(SPOILER.format(python=sys.executable, spoil="    " + (SPOILS[spoil] or "pass"), fails=spoil == "fails",
                                             when=[name.encode() for name in when]))
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


WHOLE = "--require-full-delegation"


@pytest.mark.parametrize("external", [[], ["--external", "weights=w.ptd", "--external", "commands=w.ptd"]])
@pytest.mark.parametrize("strict", [WHOLE, "--single-delegate"])
def test_a_difference_names_the_operator(compile_digits, tmp_path, monkeypatch, external, strict):
    """Where all nodes have to be in the delegate."""
    monkeypatch.chdir(tmp_path)
    done = compile_digits("last", strict, "--io", "quantized", *external, when=["linear"])
    assert done.returncode == 1 and "error[self-check.differs]" in done.stderr, done.stdout + done.stderr
    assert "output 0" in done.stderr and "the stream is right up to" in done.stderr and f"without {strict}" in done.stderr
    assert "aten.linear.default" in done.stderr and re.search(r"\.py:\d+: error", done.stderr), done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["vela"]  # nothing was written


def test_an_early_difference(compile_digits):
    said = compile_digits("first", WHOLE, "--io", "quantized", when=["relu"]).stderr
    assert "error[self-check.differs]" in said and "aten.linear.default" not in said.split("the first that it does not give is")[1], said


def runs_like_tosa(tosaic, tmp_path):
    def outputs(program):
        subprocess.run([tosaic, "run", program, "--input", tmp_path / "x.npy", "--output-dir", tmp_path / "out"], check=True, capture_output=True)
        return next((tmp_path / "out").glob("*.npy")).read_bytes()

    with np.load(DIGITS / "digits_samples.npz") as samples:
        np.save(tmp_path / "x.npy", samples[samples.files[0]][0])
    subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", "tosa-int", "--calibrate", DIGITS / "digits_samples.npz", "-q",
                    "-o", tmp_path / "tosa.pte"], check=True)
    return outputs(tmp_path / "digits.pte") == outputs(tmp_path / "tosa.pte")


@pytest.mark.parametrize("spoil,code", [("last", "self-check.differs"), ("fails", "vela.failed"), ("output", "vela.interface")])
def test_what_vela_cannot_compile_goes_to_the_cpu(compile_digits, tosaic, tmp_path, spoil, code):
    """And nothing else: the program is as right as without an NPU."""
    done = compile_digits(spoil, when=["linear"])
    assert done.returncode == 0 and done.stderr.count("warning[self-check.set-aside]") == 1, done.stdout + done.stderr
    assert "aten.linear.default runs on the CPU" in done.stderr and f"note: {code}" in done.stderr
    assert re.search(r"\.py:\d+: warning", done.stderr), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    outside = [node["name"] for node in report["nodes"] if node.get("code") == "target.set-aside"]
    assert report["self_check"] == "passed" and outside == ["linear.codes"]
    assert runs_like_tosa(tosaic, tmp_path)


def test_what_vela_compiles_wrongly_beside_another_gets_a_delegate(compile_digits, tosaic, tmp_path):
    done = compile_digits("last", when=["linear", "adaptive_avg_pool2d"])
    assert done.returncode == 0 and "aten.linear.default has a delegate of its own" in done.stderr, done.stdout + done.stderr
    assert "runs on the CPU" not in done.stderr and "self-check passed" in done.stdout
    assert runs_like_tosa(tosaic, tmp_path)


def test_a_vela_that_compiles_nothing_is_at_fault_itself(compile_digits, tmp_path):
    done = compile_digits("fails")
    assert done.returncode == 1 and "error[vela.failed]" in done.stderr and "set-aside" not in done.stderr, done.stderr
    assert not (tmp_path / "digits.pte").exists()


def test_without(compile_digits, tmp_path):
    done = compile_digits("last", "--no-self-check")
    assert done.returncode == 0 and "self-check" not in done.stdout + done.stderr and (tmp_path / "digits.pte").exists()
    assert json.loads((tmp_path / "report.json").read_text())["self_check"] is None


def test_what_the_simulator_cannot_tell_is_a_warning(compile_digits, tmp_path):
    done = compile_digits("unwritten")
    assert done.returncode == 0 and "warning[self-check.undecided]" in done.stderr and "ethosu.reset-value" in done.stderr, done.stderr
    assert "self-check passed" not in done.stdout and (tmp_path / "digits.pte").exists()


def test_a_stream_with_fewer_outputs_is_never_written(compile_digits, tmp_path):
    done = compile_digits("output", "--no-self-check", WHOLE, "--io", "quantized")
    assert done.returncode == 1 and "error[vela.interface]" in done.stderr and "1 inputs and gives 0 outputs" in done.stderr, done.stderr
    assert not (tmp_path / "digits.pte").exists()


def test_a_wrong_memory_mode_names_the_valid_ones_before_anything_is_computed(compile_digits):
    done = compile_digits(None, "--memory-mode", "Nope")
    assert done.returncode == 1 and "error[vela.config]: Vela has no memory mode Nope" in done.stderr, done.stderr
    assert "Shared_Sram" in done.stderr and "calibrat" not in done.stderr


@pytest.mark.parametrize("option,code", [("--sram", "board.sram"), ("--scratch", "board.scratch"), ("--flash", "board.flash")])
def test_what_the_board_lacks_is_refused(compile_digits, tmp_path, option, code):
    done = compile_digits(None, option, "1K")
    assert done.returncode == 1 and f"error[{code}]" in done.stderr and "the board has 1.0 KiB" in done.stderr, done.stderr
    if option != "--flash":  # with the owners of the peak
        assert "the most is live at tosa." in done.stderr and re.search(r"KiB %[\w.]+ 1x\d+x\d+x\d+xi8, .*make_digits.py:\d+", done.stderr), done.stderr
    assert not (tmp_path / "digits.pte").exists()
    assert compile_digits(None, option, "1M").returncode == 0
