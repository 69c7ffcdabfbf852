# SPDX-License-Identifier: Apache-2.0
"""The same C on a Cortex-M55, in QEMU: Helium and DSP kernels give the bytes of plain C, and the self-tests of whole nets
those of the PC."""
import pathlib
import re

import pytest

import on_board
from on_board import M33, M55, ROOT
from test_firmware import emit, nets  # noqa: F401  (a fixture)


@pytest.fixture(scope="module", autouse=True)
def tools():
    assert not on_board.missing(), on_board.missing()


def run(sources, folder, cpu):
    """Builds for the board, runs, gives what it printed and the exit status."""
    on_board.build(sources, folder / "image.elf", cpu)
    return on_board.run(folder / "image.elf")


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
