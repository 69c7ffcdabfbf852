# SPDX-License-Identifier: Apache-2.0
"""Programs for a Cortex-M55 in QEMU: what builds and runs them."""
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOARD = ROOT / "examples/board"
M55 = ["-mcpu=cortex-m55", "-mfloat-abi=hard"]
M33 = ["-mcpu=cortex-m33", "-mfloat-abi=soft"]
FLAGS = ["-mthumb", "-O2", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'device/mcu'}",
         "-ffunction-sections"]


def missing():
    """Why nothing can be run here; None: it can."""
    tools = [t for t in ["arm-none-eabi-gcc", "qemu-system-arm"] if shutil.which(t) is None]
    return f"{' and '.join(tools)} is missing: make packages-BARE installs it" if tools else None


def build(sources, image, cpu, *flags):
    """Sources or objects, with the board's start."""
    built = subprocess.run(["arm-none-eabi-gcc", *cpu, *FLAGS, f"-I{image.parent}", "-Wl,--gc-sections", "--specs=rdimon.specs", "-T",
                            BOARD / "board.ld", BOARD / "start.S", BOARD / "memory.c", *flags, *sources, "-lm", "-o", image],
                           capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]


def run(image, *options):
    """What it printed, and the exit status."""
    ran = subprocess.run(["qemu-system-arm", "-M", "mps3-an547", "-cpu", "cortex-m55", "-kernel", image, "-nographic", "-monitor",
                          "none", "-serial", "none", "-semihosting-config", "enable=on,target=native", *options],
                         capture_output=True, text=True, timeout=300)
    return ran.stdout, ran.returncode
