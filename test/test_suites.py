# SPDX-License-Identifier: Apache-2.0
"""test/run.py: its table holds together, what fails is counted, and the commands that pages and messages name exist."""
import pathlib
import re
import subprocess
import sys

import pytest
import run as runner
from suites.commands import Command, Need
from suites.table import Suite

ROOT = pathlib.Path(__file__).resolve().parents[1]


def ran(*words):
    return subprocess.run([sys.executable, ROOT / "test/run.py", *words], capture_output=True, text=True)


def names():
    return [line.split()[0] for line in ran("--list").stdout.splitlines()]


def test_every_suite_has_commands():
    done = ran("--dry-run", *names())
    assert done.returncode == 0, done.stderr
    assert len(names()) == len(set(names())) and "== python-races\n" in done.stdout


def test_a_suite_that_nobody_knows():
    assert ran("no-such-suite").returncode == 2


def counted(capsys, monkeypatch, folder, *suites):
    monkeypatch.setattr(runner, "RESULTS", folder)
    run = runner.Run(dry=False)
    run.needs(need for suite in suites for need in suite.needs)
    for suite in suites:
        run.suite(suite)
    failed = run.summary(suites)
    return capsys.readouterr().out.splitlines(), failed


def shell(text):
    return lambda: [Command(["sh", "-c", line]) for line in text.splitlines()]


PASSES = """echo '<testsuite><testcase classname="a" name="b"/></testsuite>' >{results}/a.xml"""


def test_all_passed(capsys, monkeypatch, tmp_path):
    there = Need("there", shell("true"), "python")
    lines, failed = counted(capsys, monkeypatch, tmp_path, Suite("a", "", [there], shell(PASSES)))
    assert lines[-1] == "1 passed, 0 failed" and not failed


def test_a_later_command_runs_after_one_that_fails(capsys, monkeypatch, tmp_path):
    lines, failed = counted(capsys, monkeypatch, tmp_path, Suite("a", "", [], shell(f"exit 3\n{PASSES}")))
    assert lines[-1] == "1 passed, 1 failed" and failed


@pytest.mark.parametrize("lane", ["python", "compile", "after"])
def test_what_a_suite_needs_is_not_there(capsys, monkeypatch, tmp_path, lane):
    """The suite has failed, others run."""
    broken = Need("broken", shell("false"), lane)
    suites = Suite("a", "", [broken], shell(PASSES)), Suite("b", "", [], shell(PASSES))
    lines, failed = counted(capsys, monkeypatch, tmp_path, *suites)
    assert lines[-1] == "1 passed, 1 failed" and failed
    assert "== a: not run, for want of broken" in lines


def test_a_program_that_is_not_there(capsys, monkeypatch, tmp_path):
    lines, failed = counted(capsys, monkeypatch, tmp_path, Suite("a", "", [], lambda: [Command(["/no/such"])]))
    assert lines[-1] == "0 passed, 1 failed" and failed


def test_a_suite_without_reports(capsys, monkeypatch, tmp_path):
    good, bad = (Suite(name, "", [], shell(text), reports=False) for name, text in (("good", "true"), ("bad", "exit 4")))
    lines, failed = counted(capsys, monkeypatch, tmp_path, good)
    assert lines[-1] == "good: passed" and not failed
    lines, failed = counted(capsys, monkeypatch, tmp_path, good, bad)
    assert lines[-1] == "bad: failed" and failed


def test_commands_on_pages_exist():
    """`make NAME`, and run.py's suites."""
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][a-z0-9 -]*):", makefile, re.M) for name in line.split()}
    suites = set(names())
    targets |= {f"{kind}-{name}" for name in suites for kind in ("test", "check")} | {n for n in suites if n.startswith("bench-")}
    pages = subprocess.check_output(["git", "ls-files", "*.md", "*.py", "*.cpp", "*.h"], cwd=ROOT, text=True).split()
    named = {(page, name) for page in pages for text in [(ROOT / page).read_text()]
             for name in re.findall(r"`(?:[A-Z]+=\S+ )*make ([a-z][a-z0-9-]*[a-z0-9])(?![A-Za-z-])", text) + re.findall(r"^make ([a-z0-9-]*[a-z0-9])(?![A-Za-z-])", text, re.M)}
    assert len(named) > 50
    assert sorted(row for row in named if row[1] not in targets) == []
    run = {(page, name) for page in pages for name in re.findall(r"test/run\.py ([a-z][a-z0-9-]*)", (ROOT / page).read_text())}
    assert sorted(row for row in run if row[1] not in suites) == []
