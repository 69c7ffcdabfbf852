# SPDX-License-Identifier: Apache-2.0
"""Each delegate through its C header alone, by a C program that links nothing else: on payloads of the digits model, with
wrong calls, cut payloads and no memory. The expected bytes are the reference interpreter's on the TOSA graph."""
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import executorch_programs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
INT8 = ["--quantize", "int8", "--io", "quantized", "--calibrate", DIGITS / "digits_samples.npz"]
# Vela lies next to the interpreter that runs the tests; the emulation layer is found by its environment.
PEERS = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}


@pytest.fixture(scope="module")
def programs(tosaic):
    """The folder of the tool, and of the programs that were built with it."""
    return pathlib.Path(tosaic).resolve().parent


@pytest.mark.parametrize("delegate, target, options", [
    ("tosa", "tosa-int", INT8), ("tosa", "tosa-fp", []), ("vgf", "vgf", INT8), ("vgf", "vgf", []), ("vgf_vulkan", "vgf", INT8),
    ("vulkan", "vulkan", INT8),
    ("ethos_u", "ethos-u55-128", INT8), ("ethos_u", "ethos-u85-256", INT8)])
def test_delegate(delegate, target, options, tmp_path, programs):
    def tosaic(*arguments):
        done = subprocess.run([programs / "tosaic", *map(str, arguments)], capture_output=True, text=True, env=PEERS)
        assert done.returncode == 0, done.stderr
        executorch_programs.check_written(arguments, programs / "tosaic", done.stderr)

    tosaic("compile", DIGITS / "digits.pt2", "--target", target, *options, "-o", tmp_path / "d.pte", "--require-full-delegation",
           "--emit", f"tosa={tmp_path / 'd.tosa'}")
    tosaic("extract", tmp_path / "d.pte", "-o", tmp_path / "payload")
    payload, = (tmp_path / "payload").iterdir()
    sample = np.random.default_rng(1).standard_normal((1, 1, 8, 8)).astype(np.float32)
    if options:
        sample = (sample * 40).clip(-128, 127).astype(np.int8)
    np.save(tmp_path / "input.npy", sample)
    tosaic("run", tmp_path / "d.tosa", "--input", tmp_path / "input.npy", "--executor", "interp" if options else "cpu",
           "--threads", 1, "--output-dir", tmp_path)
    (tmp_path / "inputs").write_bytes(sample.tobytes())
    (tmp_path / "outputs").write_bytes(np.load(tmp_path / "output_0.npy").tobytes())
    done = subprocess.run([programs / f"call_{delegate}", payload, tmp_path / "inputs", tmp_path / "outputs"],
                          capture_output=True, text=True, env=PEERS)
    assert done.returncode == 0 and done.stdout.endswith(" 0 failed\n"), done.stdout + done.stderr
    print(done.stdout)
    if delegate in ("tosa", "ethos_u"):
        subprocess.run([programs / f"run_{delegate}", tmp_path / "d.pte", tmp_path / "inputs", tmp_path / "found"], check=True)
        assert (tmp_path / "found").read_bytes() == (tmp_path / "outputs").read_bytes()


def test_a_program_of_executorch(tmp_path, programs):
    """The payload of ExecuTorch's own Vulkan flow that needs no data outside it."""
    stored = ROOT / "test/plugin/vulkan/add"
    file, arrays = stored.with_suffix(".pte").read_bytes(), np.load(stored.with_suffix(".npz"))
    at = file.index(b"VH00") - 4
    constants, size = struct.unpack_from("<IQ", file, at + 18)
    (tmp_path / "payload").write_bytes(file[at:at + constants + size])
    (tmp_path / "inputs").write_bytes(arrays["in.0"].tobytes() + arrays["in.1"].tobytes())
    (tmp_path / "outputs").write_bytes(arrays["out.0"].tobytes())
    done = subprocess.run([programs / "call_vulkan_backend", *(tmp_path / n for n in ("payload", "inputs", "outputs"))],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith(" 0 failed\n"), done.stdout + done.stderr


@pytest.mark.parametrize("program", ["call_tosa", "call_vgf", "call_vgf_vulkan", "call_vulkan", "call_ethos_u", "run_tosa", "run_ethos_u"])
def test_links_no_more_than_it_needs(program, programs):
    symbols = subprocess.run(["nm", "-C", programs / program], capture_output=True, text=True, check=True).stdout
    assert "tosaic::aten_" not in symbols and "tosaic::Builder" not in symbols  # no lowerings
    if program.endswith("ethos_u"):
        assert "tosaic::tosa::" not in symbols and "tosaic::cpu::" not in symbols
    else:
        assert "tosaic::ethosu::" not in symbols
