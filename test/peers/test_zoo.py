# SPDX-License-Identifier: Apache-2.0
"""A family of every other library of `make zoo`, others with every commit: all targets, and results compared with eager
PyTorch's."""
import os
import pathlib
import subprocess

import pytest
import zoo_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build/zoo-env/bin/python"


def seed():
    """The number of this commit, as in test/run.py: after twice as many as a library has families all had their turn."""
    count = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout
    return int(os.environ.get("SEED") or count or 0)


def turns():
    of_library = {}
    for name in zoo_families.FAMILIES:
        of_library.setdefault(name.split()[0], []).append(name)
    return [names[seed() // 2 % len(names)] for names in of_library.values()]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("name", turns())
def test_family(name, tosaic, tmp_path):
    assert (PYTHON.parents[1] / "done").exists(), "the zoo's libraries are not installed: `make zoo-env` says why"
    run = subprocess.run([PYTHON, "-W", "ignore", ROOT / "test/models/zoo.py", "--tosaic", tosaic, "--output", tmp_path,
                          "--only", name], capture_output=True, text=True)
    assert run.returncode == 0 and f"{name}: " in run.stdout, run.stdout + run.stderr
