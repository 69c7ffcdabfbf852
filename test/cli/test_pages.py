# SPDX-License-Identifier: Apache-2.0
"""Pages that the tool prints are those under docs/."""
import pathlib
import re
import shlex
import shutil
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
    examples = re.findall(r"```\n\$ (.*)\n((?:.+\n)*)```", (ROOT / "docs/errors.md").read_text())
    shared = [(shown, printed[command]) for command, shown in examples if command in printed]
    assert len(shared) > 15
    assert [shown for shown, found in shared if shown not in found] == []


def as_shown(shown, found):
    """`...` at the end stands for the rest."""
    head, dots, _ = shown.partition("...\n")
    return found.startswith(head) if dots else found == shown


def test_the_plans_examples(tosaic, tmp_path):
    for name in ("digits.pt2", "digits_samples.npz"):
        shutil.copy(ROOT / "examples/digits" / name, tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs/plan.md").read_text(), re.S)
    assert len(blocks) == 4
    for block in blocks:
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            tool, *arguments = shlex.split(command)
            if tool == "cat":
                (tmp_path / arguments[0]).write_text(shown)
                continue
            done = subprocess.run([tosaic, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120)
            assert as_shown(shown, done.stderr + done.stdout), done.stderr + done.stdout
