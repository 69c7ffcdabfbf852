# SPDX-License-Identifier: Apache-2.0
"""Firmware in QEMU's Cortex-M55: the bytes of this machine, in the memory that was said before, without a heap."""
import collections
import re
import shutil

import numpy
import pytest

from pte_on_board import ROOT, build, one_input, run

PROGRAMS = ROOT / "test/plugin/programs"
QUICK = sorted(path.name.removesuffix("_samples.npz") for path in (ROOT / "build/models").glob("*_samples.npz"))
LARGEST_CODE = 110 * 1024  # reader, runtime, delegate, and what they need of the C and C++ libraries


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("model", QUICK or ["digits"])
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


@pytest.mark.parametrize("name", ["ethos_u55", "ethos_u85", "ethos_layout"])
def test_programs_of_executorch(tosaic, tmp_path, name):
    """Made by ExecuTorch's own Arm backend; in one of them the dimensions lie in another order."""
    shutil.copy(PROGRAMS / f"{name}.pte", tmp_path / "net.pte")
    numpy.save(tmp_path / "x.npy", numpy.load(PROGRAMS / f"{name}.npz")["forward_in0"])
    build(tosaic, tmp_path)
    run(tosaic, "device", "run", tmp_path / "net.elf", "--input", tmp_path / "x.npy", "--output-dir", tmp_path / "board")
    run(tosaic, "run", tmp_path / "net.pte", "--input", tmp_path / "x.npy", "--output-dir", tmp_path / "here")
    assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()


def test_integers_outside(tosaic, programs, tmp_path):
    folder = programs("digits", "ethos-u55-128", "--io", "quantized")
    x = one_input(folder, tosaic)
    build(tosaic, folder)
    run(tosaic, "device", "run", folder / "net.elf", "--input", x, "--output-dir", tmp_path / "board")
    run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
    assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()


def test_a_runner_without_a_program(tosaic, programs, tmp_path):
    run(tosaic, "device", "build", "--board", "mps3-an547", "-o", tmp_path / "runner.elf")
    for target in ("ethos-u55-128", "ethos-u85-256"):
        folder = programs("digits", target)
        x = one_input(folder, tosaic)
        run(tosaic, "device", "run", tmp_path / "runner.elf", "--program", folder / "net.pte", "--input", x, "--output-dir",
            tmp_path / "board")
        run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
        assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()
    assert "device.no-program" in run(tosaic, "device", "run", tmp_path / "runner.elf", "--input", x, status=1)


def test_code_size(tosaic, programs, tmp_path):
    """Reader, runtime, delegate and what they need of the C and C++ libraries, in a firmware for a board with an NPU."""
    build(tosaic, programs("digits", "ethos-u55-128"), "--real-npu", "--map", tmp_path / "net.map")
    laid_out = (tmp_path / "net.map").read_text().split("Linker script and memory map")[1]
    bytes_of = collections.Counter()
    for bytes, archive in re.findall(r"^ \.(?:text|rodata)\S*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+) \S*?([^/\s]+?\.[ao])\b", laid_out, re.M):
        bytes_of[archive] += int(bytes, 16)
    drivers = sum(bytes_of.pop(f"libtosaic_{name}.a") for name in ("runner", "npu_registers", "board"))
    assert drivers <= 16 * 1024, bytes_of
    assert 0 < sum(bytes_of.values()) <= LARGEST_CODE, bytes_of


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_driver_of_the_registers(tosaic, programs, npu_in_qemu, tmp_path, target):
    """What runs on silicon: the NPU has registers, and the firmware holds no simulator."""
    folder = programs("digits", target)
    x = one_input(folder, tosaic)
    build(tosaic, folder, "--real-npu")
    board = ["--input", x, "--output-dir", tmp_path / "board"]
    run(tosaic, "device", "run", folder / "net.elf", *board, "--plugin", f"{npu_in_qemu},target={target}")
    run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
    assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()
    another = target.replace("128", "256") if "128" in target else target.replace("256", "512")
    text = run(tosaic, "device", "run", folder / "net.elf", *board, "--plugin", f"{npu_in_qemu},target={another}", status=1)
    assert "delegate.product" in text and target in text and another in text
    assert "ethosu.no-npu" in run(tosaic, "device", "run", folder / "net.elf", *board, status=1)


def test_a_fault_in_words(tosaic, programs, npu_in_qemu, tmp_path):
    """A runner does not know that this program wants fast scratch memory, so the NPU writes where there is none."""
    folder = programs("digits", "ethos-u65-256")
    run(tosaic, "device", "build", "--board", "mps3-an547", "--real-npu", "-o", tmp_path / "runner.elf")
    text = run(tosaic, "device", "run", tmp_path / "runner.elf", "--program", folder / "net.pte", "--input",
               one_input(folder, tosaic), "--plugin", f"{npu_in_qemu},target=ethos-u65-256", status=1)
    assert "error[ethosu.fault]" in text and "bus fault: an OFM write" in text


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
