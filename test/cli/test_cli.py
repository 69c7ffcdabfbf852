# SPDX-License-Identifier: Apache-2.0
"""Runs every golden text test of this folder; `--bless` rewrites them."""
import pathlib
import re
import sys

import golden
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import executorch_programs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FILES = sorted(HERE.rglob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[str(f.relative_to(HERE).with_suffix("")) for f in FILES])
def test_golden(path, tosaic, tmp_path, request):
    text = path.read_text()
    test = golden.parse(text)
    code, out, err = golden.run(test, tosaic, tmp_path)
    for program in tmp_path.rglob("*.pte"):
        if any(c.startswith("tosaic compile") for c in test.commands):
            executorch_programs.check(program, tosaic, err)
    if request.config.getoption("--bless"):
        new = golden.blessed(test, code, out, err, tmp_path)
        if new != text:
            path.write_text(new)
        return
    assert (code, golden.ended(out), golden.ended(err)) == (test.exit_code, test.text("stdout"), test.text("stderr"))
    for part in test.all("text"):
        assert golden.ended((tmp_path / part.argument).read_text()) == part.text
    for part in test.all("no"):
        assert not (tmp_path / part.argument).exists()


@pytest.mark.parametrize("path", FILES, ids=[str(f.relative_to(HERE).with_suffix("")) for f in FILES])
def test_errors_name_file_and_hint(path):
    """What is refused names its file, unless the command line itself is wrong; and says what to do."""
    test = golden.parse(path.read_text())
    error = re.search(r"^(.*?)error\[([a-z0-9.-]+)\]", test.text("stderr").replace("\x1b", ""), re.MULTILINE)
    if not error or '{"severity"' in test.text("stderr"):
        return
    assert error[1] or test.exit_code == 2, "no file is named"
    assert "\n  help: " in test.text("stderr"), "no hint"


def test_runner_reads_every_part(tmp_path):
    text = ("# about\n$ tosaic one\n$ tosaic two\n--- file a.txt\nline\n--- bytes b.bin\n00ff\n--- mask [0-9]+ ms\n"
            "--- no c\n--- exit 1\n--- stdout\nout ~\n--- stderr\nerr\n")
    test = golden.parse(text)
    assert test.commands == ["tosaic one", "tosaic two"] and test.exit_code == 1
    fake = tmp_path / "tosaic"
    fake.write_text('#!/bin/sh\n[ "$1" = one ] && exit 0\ncat a.txt >/dev/null && echo "out 12 ms"; echo err >&2; exit 1\n')
    fake.chmod(0o755)
    (tmp_path / "work").mkdir()
    code, out, err = golden.run(test, str(fake), tmp_path / "work")
    assert (code, out, err) == (1, "out ~\n", "err\n")
    assert (tmp_path / "work/b.bin").read_bytes() == b"\x00\xff"
    assert golden.blessed(test, code, out, err, tmp_path / "work") == text


@pytest.mark.parametrize("text", ["--- stdout\nx\n", "what\n", "$ tosaic\n--- nonsense\n", "$ tosaic\n--- exit 1\nstray\n"])
def test_runner_refuses(text):
    with pytest.raises(ValueError):
        golden.parse(text)
