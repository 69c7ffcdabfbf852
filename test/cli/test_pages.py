# SPDX-License-Identifier: Apache-2.0
"""Pages that the tool prints are those under docs/."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_operators(tosaic):
    printed = subprocess.run([tosaic, "ops", "--markdown"], capture_output=True, text=True, check=True, timeout=120)
    assert printed.stdout == (ROOT / "docs" / "operators.md").read_text(), "`make matrix` writes the page again"
