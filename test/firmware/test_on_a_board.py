# SPDX-License-Identifier: Apache-2.0
"""The same C on a Cortex-M55, in QEMU: Helium and DSP kernels give the bytes of plain C, and the self-tests of whole nets
those of the PC."""
import os
import pathlib
import re
import subprocess

import pytest

import on_board
from on_board import M33, M55, ROOT
from test_firmware import QUICK, emit, nets  # noqa: F401  (a fixture)

CPUS = pytest.mark.parametrize("cpu", [M55, M33], ids=["helium", "dsp"])


@pytest.fixture(scope="module", autouse=True)
def tools():
    assert not on_board.missing(), on_board.missing()


def run(sources, folder, cpu, *flags):
    """Builds for the board, runs, gives what it printed and the exit status."""
    on_board.build(sources, folder / "image.elf", cpu, *flags)
    return on_board.run(folder / "image.elf")


@CPUS
def test_kernels(cpu, tmp_path):
    said, status = run([pathlib.Path(__file__).parent / "kernels.c", ROOT / "device/mcu/tosaic_mcu.c"], tmp_path, cpu)
    assert status == 0, said
    cases, differ = map(int, re.search(r"(\d+) cases, (\d+) differ", said).groups())
    assert cases > 1000 and differ == 0


def test_lanes(tmp_path):
    sources = [pathlib.Path(__file__).parent / name for name in ["lanes.c", "lanes_of_one.c"]]
    said, status = run(sources, tmp_path, M55)
    assert status == 0 and re.search(r"244 cases, 0 differ", said), said


@pytest.mark.parametrize("name,scheme", [
    *[(name, "int8") for name in ["keyword_spotting", "auto_encoder", "tiny_vit", "resnet8", "visual_wake_words", "streaming_gru",
                                  "encoder", "pools", "mixed"]],
    *[(name, "int16x8") for name in ["keyword_spotting", "encoder", "pools"]]])
def test_nets(name, scheme, tosaic, nets, tmp_path):  # noqa: F811
    emit(tosaic, *nets(name), tmp_path, "--io", "quantized", "--quantize", scheme)
    said, status = run(sorted(tmp_path.glob("*.c")), tmp_path, M55)
    assert status == 0, said
    assert re.search(r"\b0 of \d+ bytes differ", said), said


def test_the_page_for_embedded_engineers(tosaic, tmp_path):
    """docs/boards.md, the commands of fifteen minutes, as they stand there but for the installation."""
    block = re.search(r"## In fifteen minutes.*?```sh\n(.*?)```", (ROOT / "docs/boards.md").read_text(), re.S)[1]
    install, commands = block.split("\n", 1)
    assert install.startswith("apt-get install ")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{pathlib.Path(tosaic).parent}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-euc", commands], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0 and "this is a 9" in done.stdout, done.stdout + done.stderr


def test_on_a_processor_without_helium(tosaic, nets, tmp_path):  # noqa: F811
    emit(tosaic, *nets("keyword_spotting"), tmp_path, "--io", "quantized", target="cortex-m33")
    said, status = run(sorted(tmp_path.glob("*.c")), tmp_path, M33)
    assert status == 0 and re.search(r"0 of \d+ bytes differ", said), said


@CPUS
@pytest.mark.parametrize("name", ["keyword_spotting", "resnet8"])
def test_kernels_of_cmsis_nn(name, cpu, tosaic, nets, tmp_path):  # noqa: F811
    """Arm's kernels give the bytes of ours. The pack is the user's: CMSIS_NN says where."""
    if not (pack := os.environ.get("CMSIS_NN")):
        pytest.skip("CMSIS_NN names no folder of ARM-software/CMSIS-NN")
    emit(tosaic, *nets(name), tmp_path, "--io", "quantized", "--kernels", "cmsis-nn")
    sources = [f for folder in ["Convolution", "NNSupport", "Transpose"]
               for f in pathlib.Path(pack, f"Source/{folder}Functions").glob("*.c")
               if not re.search("_f(16|32|lt)", f.name)]
    said, status = run([*sorted(tmp_path.glob("*.c")), *sources], tmp_path, cpu, f"-I{pack}/Include",
                       "-DCMSIS_NN_USE_SINGLE_ROUNDING", "-w")
    assert status == 0 and re.search(r"0 of \d+ bytes differ", said), said
