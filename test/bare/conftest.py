# SPDX-License-Identifier: Apache-2.0
import shutil

import numpy
import pytest

from pte_on_board import ROOT, run

MODELS = ROOT / "build/models"


@pytest.fixture(scope="session", autouse=True)
def tools():
    missing = [tool for tool in ("arm-none-eabi-g++", "qemu-system-arm") if not shutil.which(tool)]
    assert not missing, f"{' and '.join(missing)} is missing: make packages-BARE installs it"


@pytest.fixture(scope="session")
def npu_in_qemu():
    """The plug-in: registers of an NPU in QEMU's board."""
    plugin = ROOT / "build/release/device/qemu/tosaic_npu.so"
    assert plugin.exists(), "make qemu-npu builds it"
    return plugin


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
