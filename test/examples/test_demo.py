# SPDX-License-Identifier: Apache-2.0
"""examples/digits/demo.sh, which `make demo` runs: it stops where a command fails or the devices' bytes differ."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"


@pytest.mark.skipif(bool(os.environ.get("TOSAIC_WITHOUT_VULKAN")), reason="it runs on a Vulkan device")
def test_the_demo(tosaic, tmp_path):
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip put Vela
    done = subprocess.run([DIGITS / "demo.sh", tosaic, tmp_path], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=os.environ | {"PATH": path})
    assert done.returncode == 0, done.stdout[-2000:]
    assert "the Vulkan device and the CPU give the same bytes" in done.stdout
    shares = [float(x) for x in re.findall(r"([0-9.]+) ?%", done.stdout.rsplit("$ tosaic", 1)[1])]
    assert shares and max(shares) <= 100 and min(shares) > 90, done.stdout[-1000:]
