# SPDX-License-Identifier: Apache-2.0
"""Pages that the tool prints are those under docs/."""
import pathlib
import re
import subprocess

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_operators(tosaic):
    printed = subprocess.run([tosaic, "ops", "--markdown"], capture_output=True, text=True, check=True, timeout=120)
    assert printed.stdout == (ROOT / "docs" / "operators.md").read_text(), "`make matrix` writes the page again"


def test_errors(tosaic):
    printed = subprocess.run([tosaic, "explain-error", "--markdown"], capture_output=True, text=True, check=True, timeout=120)
    assert printed.stdout == (ROOT / "docs" / "errors.md").read_text(), "`make errors` writes the page again"


def test_the_errors_examples():
    """Those that are golden texts as well show what the tool prints."""
    printed = {}
    for path in (ROOT / "test/cli").rglob("*.txt"):
        test = golden.parse(path.read_text())
        printed[test.commands[-1]] = printed.get(test.commands[-1], "") + test.text("stderr")
    examples = re.findall(r"```console\n\$ (.*)\n((?:.+\n)*)```", (ROOT / "docs/errors.md").read_text())
    shared = [(shown, printed[command]) for command, shown in examples if command in printed]
    assert len(shared) > 15
    assert [shown for shown, found in shared if shown not in found] == []
