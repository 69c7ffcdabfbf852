# SPDX-License-Identifier: Apache-2.0
"""Firmware in QEMU's Cortex-M55: the bytes of this machine, in the memory that was said before, without a heap."""
import pathlib
import re
import shutil
import subprocess

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "build/models"
LARGEST_CODE = 110 * 1024  # reader, runtime, delegate, and what they need of the C and C++ libraries

pytestmark = pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="no QEMU for Arm: make packages-BARE")


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs(tosaic, tmp_path_factory):
    """compile(model, target): the .pte and an input for it, compiled once."""
    made = {}

    def compile_model(model, target, *options):
        key = (model, target, *options)
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{model}-{target}")
            samples = MODELS / f"{model}_samples.npz"
            run(tosaic, "compile", MODELS / f"{model}.pt2", "--target", target, "--calibrate", samples, *options, "-o",
                folder / "net.pte")
            arrays = numpy.load(samples)
            numpy.save(folder / "x.npy", arrays[arrays.files[0]].astype(numpy.float32))
            made[key] = folder
        return made[key]

    return compile_model


def one_input(folder, tosaic):
    """An input of the program's own size."""
    text = run(tosaic, "inspect", folder / "net.pte")
    shape, dtype = re.search(r"input +v\d+ ((?:\d+x)*)(\w+)", text).groups()
    sizes = [int(size) for size in shape.split("x") if size]
    values = numpy.random.default_rng(7).uniform(-1, 1, sizes)
    kind = {"f32": numpy.float32, "i8": numpy.int8, "i32": numpy.int32, "i64": numpy.int64}[dtype]
    numpy.save(folder / "x.npy", values.astype(kind) if dtype == "f32" else (values * 100).astype(kind))
    return folder / "x.npy"


def build(tosaic, folder, *options, status=0):
    return run(tosaic, "device", "build", folder / "net.pte", "--board", "mps3-an547", "-o", folder / "net.elf", *options,
               status=status)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("model", ["digits", "keyword_spotting", "auto_encoder"])
def test_same_bytes(tosaic, programs, tmp_path, model, target):
    folder = programs(model, target)
    x = one_input(folder, tosaic)
    build(tosaic, folder)
    said = run(tosaic, "device", "run", folder / "net.elf", "--input", x, "--output-dir", tmp_path / "board")
    run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
    here, board = (numpy.load(tmp_path / side / "output_0.npy") for side in ("here", "board"))
    assert here.dtype == board.dtype and here.tobytes() == board.tobytes()
    # What the firmware was built with holds, and is not much more than it used.
    used, given = map(int, re.search(r"arena (\d+) bytes, of (\d+)", said).groups())
    assert used <= given <= 1.25 * used, said
    assert f"firmware arena {given} bytes" in run(tosaic, "inspect", folder / "net.pte")


def test_integers_outside(tosaic, programs, tmp_path):
    folder = programs("digits", "ethos-u55-128", "--io", "quantized")
    x = one_input(folder, tosaic)
    build(tosaic, folder)
    run(tosaic, "device", "run", folder / "net.elf", "--input", x, "--output-dir", tmp_path / "board")
    run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
    assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()


def test_code_size(tosaic, programs):
    """Reader, runtime and delegate with the driver of a real NPU, as a board has them."""
    text = build(tosaic, programs("digits", "ethos-u55-128"), "--real-npu")
    assert int(re.search(r"CODE +(\d+) of", text)[1]) <= LARGEST_CODE, text


def test_another_product(tosaic, programs):
    text = build(tosaic, programs("digits", "ethos-u55-128"), "--npu", "ethos-u55-256", status=1)
    assert "delegate.product" in text and "ethos-u55-128" in text and "ethos-u55-256" in text


def test_arena_too_small(tosaic, programs):
    folder = programs("digits", "ethos-u55-128")
    build(tosaic, folder, "--arena", 5000)
    text = run(tosaic, "device", "run", folder / "net.elf", "--input", one_input(folder, tosaic), status=1)
    needed = int(re.search(r"device.arena\]: the arena has 5000 bytes, at least (\d+) are needed", text)[1])
    assert needed > 5000


def test_does_not_fit(tosaic, programs):
    text = build(tosaic, programs("digits", "ethos-u55-128"), "--arena", 3 << 20, status=1)
    assert "device.memory" in text and re.search(r"ARENA: 3145728 bytes are needed, 2097152 are there", text)


def test_damaged_payload(tosaic, programs, tmp_path):
    damaged = bytearray((programs("digits", "ethos-u55-128") / "net.pte").read_bytes())
    at = damaged.find(b"COP1")
    damaged[at:at + 4] = b"COPX"
    (tmp_path / "net.pte").write_bytes(damaged)
    assert "ethosu.container" in build(tosaic, tmp_path, status=1)


def test_another_delegate(tosaic, programs):
    text = build(tosaic, programs("digits", "tosa-int"), status=1)
    assert "device.delegate" in text and "TOSABackend" in text


def test_wrong_input(tosaic, programs, tmp_path):
    folder = programs("digits", "ethos-u55-128")
    build(tosaic, folder)
    numpy.save(tmp_path / "wrong.npy", numpy.zeros((1, 1, 4, 4), numpy.float32))
    text = run(tosaic, "device", "run", folder / "net.elf", "--input", tmp_path / "wrong.npy", status=1)
    assert "device.input" in text and "1x1x4x4xf32" in text and "1x1x8x8xf32" in text


def test_no_firmware(tosaic, tmp_path):
    (tmp_path / "net.elf").write_bytes(b"nothing")
    assert "device.run" in run(tosaic, "device", "run", tmp_path / "net.elf", status=1)
