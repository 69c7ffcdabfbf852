# SPDX-License-Identifier: Apache-2.0
"""The same C on a Cortex-M55, in QEMU: Helium and DSP kernels give the bytes of plain C, and the self-tests of whole nets
those of the PC."""
import pathlib
import re
import shutil
import subprocess

import pytest

from test_firmware import QUICK, emit, nets  # noqa: F401  (a fixture)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOARD = pathlib.Path(__file__).resolve().parent / "board"
M55 = ["-mcpu=cortex-m55", "-mfloat-abi=hard"]
M33 = ["-mcpu=cortex-m33", "-mfloat-abi=soft"]


@pytest.fixture(scope="module", autouse=True)
def tools():
    missing = [t for t in ["arm-none-eabi-gcc", "qemu-system-arm"] if shutil.which(t) is None]
    assert not missing, f"{' and '.join(missing)} is missing: make packages-BARE installs it"


def run(sources, folder, cpu, *flags):
    """Builds for the board, runs, gives what it printed and the exit status."""
    image = folder / "image.elf"
    built = subprocess.run(["arm-none-eabi-gcc", "-mthumb", *cpu, "-O2", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra",
                            "-Werror", f"-I{folder}", f"-I{ROOT / 'device/mcu'}", "-ffunction-sections", "-Wl,--gc-sections",
                            "--specs=rdimon.specs", "-T", BOARD / "board.ld", BOARD / "start.S", BOARD / "memory.c", *flags,
                            *sources, "-lm", "-o", image], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    ran = subprocess.run(["qemu-system-arm", "-M", "mps3-an547", "-cpu", "cortex-m55", "-kernel", image, "-nographic",
                          "-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native"],
                         capture_output=True, text=True, timeout=300)
    return ran.stdout, ran.returncode


@pytest.mark.parametrize("cpu", [M55, M33], ids=["helium", "dsp"])
def test_kernels(cpu, tmp_path):
    said, status = run([pathlib.Path(__file__).parent / "kernels.c", ROOT / "device/mcu/tosaic_mcu.c"], tmp_path, cpu)
    assert status == 0, said
    cases, differ = map(int, re.search(r"(\d+) cases, (\d+) differ", said).groups())
    assert cases > 1000 and differ == 0


@pytest.mark.parametrize("name", ["keyword_spotting", "auto_encoder", "tiny_vit", "resnet8", "visual_wake_words", "streaming_gru",
                                  "mixed"])
def test_nets(name, tosaic, nets, tmp_path):  # noqa: F811
    emit(tosaic, *nets(name), tmp_path, "--io", "quantized")
    said, status = run(sorted(tmp_path.glob("*.c")), tmp_path, M55)
    assert status == 0, said
    assert re.search(r"0 of \d+ bytes differ", said), said


def test_on_a_processor_without_helium(tosaic, nets, tmp_path):  # noqa: F811
    emit(tosaic, *nets("keyword_spotting"), tmp_path, "--io", "quantized", target="cortex-m33")
    said, status = run(sorted(tmp_path.glob("*.c")), tmp_path, M33)
    assert status == 0 and re.search(r"0 of \d+ bytes differ", said), said
