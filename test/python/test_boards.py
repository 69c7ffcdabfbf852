# SPDX-License-Identifier: Apache-2.0
"""Sources for a microcontroller from Python: the same as the command line writes, compiled and run here."""
import json
import subprocess

import pytest
import torch

import tosaic
from tosaic import Error


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, image):
        return torch.relu(self.conv(image)).mean((2, 3))


IMAGE = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def compiled(**options):
    return tosaic.compile(Net(), IMAGE, target="cortex-m55", calibration=[IMAGE], **options)


def test_a_folder_runs_its_self_test(tmp_path):
    artifact = compiled()
    artifact.save_firmware(tmp_path / "new" / "fw", name="eyes")
    folder = tmp_path / "new" / "fw"
    assert {f.name: f.read_text() for f in folder.iterdir()} == artifact.firmware("eyes")
    subprocess.run(["cc", "-O1", "-ffp-contract=off", f"-I{folder}", *folder.glob("*.c"), "-lm", "-o", tmp_path / "test"], check=True)
    said = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert said.returncode == 0 and "eyes_run output 0: 8 floats" in said.stdout, said.stdout


def test_the_name_is_the_models():
    files = compiled().firmware()
    assert {"Net.h", "Net.c", "Net_weights.c", "Net_test.c", "memory.json"} <= files.keys()
    assert "void Net_run(const float *in0, float *out0);" in files["Net.h"]
    assert json.loads(files["memory.json"])["ram"]["arena"] > 0


def test_refused(tmp_path):
    for make, code in [(lambda: tosaic.compile(Net(), IMAGE, target="tosa-fp").firmware(), "firmware.target"),
                       (lambda: compiled(sram=100).firmware(), "board.sram"),
                       (lambda: compiled(flash="0.1K").save_firmware(tmp_path / "fw"), "board.flash"),
                       (lambda: compiled().firmware("no name"), "firmware.name")]:
        with pytest.raises(Error) as why:
            make()
        assert why.value.code == code
    assert not (tmp_path / "fw").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(Error) as why:
        compiled().save_firmware(tmp_path / "file")
    assert why.value.code == "file.write"
