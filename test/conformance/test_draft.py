# SPDX-License-Identifier: Apache-2.0
"""A slice of the conformance tests of what the draft of TOSA 1.1 adds; `make test-conformance-draft` is all of them."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = 3


@pytest.mark.by_turns(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_draft(tosaic, part):
    python = ROOT / "build/tosa-draft-env/bin/python"
    assert python.exists(), "make tosa-draft-env"
    done = subprocess.run([python, "test/conformance/draft.py", "slice", "--part", f"{part}/{PARTS}", "--tosaic", tosaic, "--executors", "interp", "cpu"],
                          cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", done.stdout).groups())
    assert passed >= 40 and failed == 0, done.stdout
