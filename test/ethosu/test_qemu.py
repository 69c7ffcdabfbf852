# SPDX-License-Identifier: Apache-2.0
"""Firmware that drives the NPU's registers, in QEMU with device/qemu's plug-in: its bytes are those of this computer."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import networks
import numpy as np
import pytest
import simulator
import suite

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "device/qemu/firmware"
ARM = ["-mcpu=cortex-m55", "-mthumb", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


@pytest.fixture(scope="module")
def plugin(library):
    path = library.resolve().parent.parent / "device/qemu/tosaic_npu.so"
    missing = [name for name in ("qemu-system-arm", "arm-none-eabi-gcc", "arm-none-eabi-g++") if not shutil.which(name)]
    if missing or not path.exists():
        pytest.skip(f"no {', '.join(missing) or path.name}: make qemu-npu")
    return path


def block(name, data):
    return name.ljust(16, b"\0") + struct.pack("<IB11x", len(data), 0) + data + bytes(-len(data) % 16)


def payload_of(program):
    """What EthosUBackend's payload looks like, of Vela's raw output."""
    def tensors(kind):
        rows = [struct.pack("<9i", *map(int, shape), size, offset, region) for shape, size, region, offset in program.tensors(kind)]
        return struct.pack("<i", len(rows)) + b"".join(rows)
    scratch = struct.pack("<I", int(program.fields["scratch_shape"][0]))
    return b"".join(block(*b) for b in ((b"vela_bin_stream", b""), (b"cmd_data", program.commands), (b"weight_data", program.constants),
                                        (b"scratch_size", scratch), (b"inputs", tensors("input")), (b"outputs", tensors("output")),
                                        (b"vela_end_stream", b"")))


def build(folder, payload, given, *options):
    """firmware.elf with these bytes inside."""
    (folder / "payload.bin").write_bytes(payload)
    (folder / "input.bin").write_bytes(given)
    words = folder / "status_text.o"
    subprocess.run(["arm-none-eabi-g++", *ARM, "-fno-exceptions", "-fno-rtti", "-c", ROOT / "src/ethosu_device/status_text.cpp", "-o", words], check=True)
    subprocess.run(["arm-none-eabi-gcc", *ARM, *options, f'-DPAYLOAD="{folder}/payload.bin"', f'-DINPUT="{folder}/input.bin"', "-nostdlib",
                    SOURCES / "npu.c", words, "-T", SOURCES / "npu.ld", "-lgcc", "-o", folder / "firmware.elf"], check=True)
    return folder / "firmware.elf"


def run(elf, *plugin):
    """(exit code, what the firmware printed, what the plug-in reported)"""
    done = subprocess.run(["qemu-system-arm", "-machine", "mps3-an547", "-nographic", "-monitor", "none", "-serial", "none",
                           "-semihosting-config", "enable=on,target=native", "-kernel", elf, *plugin],
                          capture_output=True, text=True, timeout=120)
    lines = done.stderr.splitlines()
    said = [line for line in lines if line.startswith("tosaic_npu: ")]
    return done.returncode, "\n".join(line for line in lines if line not in said), "\n".join(said)


@pytest.fixture(scope="module")
def made(library, workspace):
    def once(name, target):
        tosa = suite.prepare(workspace / "networks", name, networks.networks()[name])
        npz = suite.compiled(tosa, target)
        with np.load(tosa.parent / "inputs_0.npz") as given:
            inputs = list(given.values())
        program = simulator.Program(library, npz)
        return program, inputs, program.run(inputs)
    return once


@pytest.mark.parametrize("name,options", [("table_i8", []), ("conv_i8_4x6x70_40_k3x3_s11_d11", ["-DBY_INTERRUPT"])], ids=["polled", "interrupt"])
@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_outputs(target, name, options, plugin, made, tmp_path):
    program, inputs, expected = made(name, target)
    elf = build(tmp_path, payload_of(program), inputs[0].tobytes(), *options)
    code, printed, reports = run(elf, "-plugin", f"{plugin},target={target}")
    assert code == 0 and not reports
    assert np.array(printed.split(), np.int8).tobytes() == expected[0]


def test_the_examples_digits(plugin, tosaic, library, tmp_path):
    """From a .pt2 to the ten numbers that the firmware prints."""
    digits, pte = ROOT / "examples/digits", tmp_path / "digits.pte"
    where = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}  # where pip installed vela
    call = lambda *words: subprocess.run([tosaic, *words], check=True, capture_output=True, text=True, env=where)
    call("compile", digits / "digits.pt2", "--target", "ethos-u55-128", "--calibrate", digits / "digits_samples.npz", "-o", pte)
    call("extract", pte, "-o", tmp_path / "parts")
    payload = next(iter((tmp_path / "parts").glob("forward_delegate0.*"))).read_bytes()
    given = np.random.default_rng(0).integers(-128, 128, 64, np.int8)
    parts = dict(blocks(payload))
    scratch = np.zeros(struct.unpack("<I", parts[b"scratch_size"])[0], np.uint8)
    at = lambda kind: struct.unpack_from("<9i", parts[kind], 4)[7]
    scratch[at(b"inputs"):][:64] = given.view(np.uint8)
    simulator.Stream(library, parts[b"cmd_data"], parts[b"weight_data"]).run({1: scratch})
    expected = scratch[at(b"outputs"):][:10].view(np.int8)
    code, printed, reports = run(build(tmp_path, payload, given.tobytes()), "-plugin", f"{plugin},target=ethos-u55-128")
    assert code == 0 and not reports
    assert printed.split() == [str(v) for v in expected]


def blocks(payload):
    at = 0
    while at < len(payload):
        name, size = payload[at:at + 16].rstrip(b"\0"), struct.unpack_from("<I", payload, at + 16)[0]
        yield name, payload[at + 32:at + 32 + size]
        at += 32 + (size + 15) // 16 * 16


def test_faults_in_words(plugin, made, tmp_path):
    """A program of another product, and damaged weights: the firmware prints STATUS in words, QEMU says why."""
    program, inputs, _ = made("conv_i8_4x6x70_40_k3x3_s11_d11", "ethos-u55-128")
    payload = payload_of(program)
    damaged = payload.replace(program.constants, b"\xff" * len(program.constants))
    code, printed, reports = run(build(tmp_path, damaged, inputs[0].tobytes()), "-plugin", f"{plugin},target=ethos-u55-128")
    assert code == 1 and printed.startswith("stopped; weight decoder fault; interrupt raised")
    assert "error[ethosu.weights]: command stream, byte" in reports
    code, printed, reports = run(tmp_path / "firmware.elf", "-plugin", f"{plugin},target=ethos-u55-128,quiet=on")
    assert code == 1 and not reports


@pytest.mark.parametrize("by", [[], ["-DBY_INTERRUPT"]], ids=["polled", "interrupt"])
def test_the_cores_own_memory_is_not_on_the_bus(by, plugin, made, tmp_path):
    program, inputs, _ = made("conv_i8_4x6x70_40_k3x3_s11_d11", "ethos-u55-128")
    elf = build(tmp_path, payload_of(program), inputs[0].tobytes(), '-DSCRATCH=".private"', *by)
    code, printed, reports = run(elf, "-plugin", f"{plugin},target=ethos-u55-128")
    assert code == 1 and printed.startswith("stopped; bus fault: an OFM write on port 0")
    assert "error[ethosu.out-of-region]" in reports and "BASEP1 is 0x200" in reports


def test_no_npu(plugin, made, tmp_path):
    program, inputs, _ = made("chain_i8_16", "ethos-u55-128")
    elf = build(tmp_path, payload_of(program), inputs[0].tobytes())
    assert run(elf) == (2, "no NPU", "")
    base = run(elf, "-plugin", f"{plugin},base=0x48105000")
    assert base[:2] == (2, "no NPU")
    for option, why in (("target=ethos-u55-512", "there is no Ethos-U55 with 512 MACs"), ("target=u55", "not of the form"),
                        ("colour=red", "unknown option colour=red"), ("irq=7", "unknown option irq=7")):
        code, _, said = run(elf, "-plugin", f"{plugin},{option}")
        assert code == 1 and why in said
    done = subprocess.run(["qemu-system-arm", "-machine", "mps2-an505", "-nographic", "-plugin", plugin], capture_output=True, text=True)
    assert done.returncode == 1 and "no SSE-300 subsystem" in done.stderr
