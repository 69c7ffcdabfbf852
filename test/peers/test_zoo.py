# SPDX-License-Identifier: Apache-2.0
"""A few of the families of `make zoo` that need PyTorch alone, others with each commit (SEED chooses)."""
import os
import pathlib
import random
import subprocess

import pytest
import zoo
import zoo_families

NAMES = sorted(name for name in zoo_families.FAMILIES if name.startswith("torch "))


def seed():
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout
    return os.environ.get("SEED") or commit.strip()


@pytest.mark.parametrize("name", random.Random(seed()).sample(NAMES, 4))
def test_family(name, tosaic, tmp_path):
    found = zoo.look_at(str(tosaic), name, tmp_path / "family", ["tosa-fp", "vgf", "tosa-int"])
    assert "export" not in found, found["export"]
    for target, row in found.items():
        assert "error" not in row, row["error"]
        assert row["taken"] == row["of"] or target == "tosa-fp", row["why"]  # which has no integers to index with
        if target != "tosa-int":
            assert row["worst"] < 1e-3, row
        else:
            assert row["snr"] > 30, row
