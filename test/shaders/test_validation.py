# SPDX-License-Identifier: Apache-2.0
"""Debian's validation layer, with synchronisation validation, has nothing to say: over the graphs of test_shaders, and over
models as the tool runs them. `make test-vulkan` is all of it."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
VALIDATED = [ROOT / ".ci/validated", "--opens"]


PARTS = 4


def validated(*command, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "GTEST_OUTPUT"} | variables
    done = subprocess.run([*VALIDATED, *map(str, command)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.by_turns(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_graphs(tosaic, part):
    said = validated(pathlib.Path(tosaic).parent / "test_shaders", GTEST_TOTAL_SHARDS=str(PARTS), GTEST_SHARD_INDEX=str(part))
    assert "[  PASSED  ]" in said


@pytest.mark.parametrize("options", [[], ["--quantize", "int8", "--calibrate", DIGITS / "digits_samples.npz"]])
def test_digits(tosaic, tmp_path, options):
    subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", "vulkan", "-o", tmp_path / "d.pte", *options], check=True)
    assert "on vulkan" in validated(tosaic, "run", tmp_path / "d.pte", "--input", DIGITS / "digit.npy", "--repeat", 2, "--profile")
