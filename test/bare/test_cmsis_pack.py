# SPDX-License-Identifier: Apache-2.0
"""The CMSIS pack: its sources, with what it says of them, are the runtime. Compiled as a project would, apart from this
checkout, linked by `tosaic device build`, run in QEMU."""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree as xml

import pytest

from pte_on_board import ROOT, build, one_input, run

FLAGS = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard -Os -ffunction-sections -fdata-sections -std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit -w -Wno-psabi"
COMPILER = ["ccache"] * bool(shutil.which("ccache")) + ["arm-none-eabi-g++"]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    subprocess.run([sys.executable, ROOT / "device/make_pack.py", "--output", folder / "a.pack"], check=True)
    with zipfile.ZipFile(folder / "a.pack") as packed:
        packed.extractall(folder / "root")
    return folder / "root"


def test_files(pack):
    top = xml.parse(pack / "tosaic.tosaic.pdsc").getroot()
    assert top.find("releases/release").get("version") == (ROOT / "VERSION").read_text().strip()
    assert {component.get("Csub") for component in top.iter("component")} == {"Runtime", "NPU Registers", "NPU Simulator", "Runner"}
    for file in top.iter("file"):
        assert (pack / file.get("name")).exists(), file.get("name")
    assert not [path for path in pack.rglob("*") if "posix" in path.parts]


@pytest.mark.by_turns(3)  # two minutes of compiling
def test_same_bytes(pack, tosaic, programs, tmp_path):
    components = {c.get("Csub"): c for c in xml.parse(pack / "tosaic.tosaic.pdsc").getroot().iter("component")}
    libraries = tmp_path / "libraries"
    shutil.copytree(ROOT / "build/cortex-m55/device", libraries)
    (tmp_path / "before.h").write_text(components["Runtime"].findtext("Pre_Include_Global_h"))
    include = [f"-I{pack / file.get('name')}" for file in components["Runtime"].iter("file") if file.get("category") == "include"]

    def compile_file(at_source):
        at, source = at_source
        made = tmp_path / f"{at}.o"
        subprocess.run([*COMPILER, *FLAGS.split(), "-include", tmp_path / "before.h", *include, "-c", pack / source, "-o", made], check=True)
        return made

    for name, archive in (("Runtime", "firmware"), ("NPU Simulator", "npu_simulator"), ("Runner", "runner")):
        sources = [file.get("name") for file in components[name].iter("file") if file.get("category") == "source"]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            objects = list(threads.map(compile_file, enumerate(sources)))
        (libraries / f"libtosaic_{archive}.a").unlink()
        subprocess.run(["arm-none-eabi-ar", "rc", libraries / f"libtosaic_{archive}.a", *objects], check=True)
    folder = programs("digits", "ethos-u55-128")
    x = one_input(folder, tosaic)
    build(tosaic, folder, "--libraries", libraries)
    run(tosaic, "device", "run", folder / "net.elf", "--input", x, "--output-dir", tmp_path / "board")
    run(tosaic, "run", folder / "net.pte", "--input", x, "--output-dir", tmp_path / "here")
    assert (tmp_path / "board/output_0.npy").read_bytes() == (tmp_path / "here/output_0.npy").read_bytes()
