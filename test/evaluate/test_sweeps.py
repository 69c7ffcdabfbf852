# SPDX-License-Identifier: Apache-2.0
"""tosaic sweep: its rows are what `compile`, `evaluate` and the firmware's memory.json say of the same program one by one."""
import csv
import io
import json
import re
import subprocess

import pytest

from labelled_digits import LabelledDigits


@pytest.fixture(scope="module")
def digits(tosaic, tmp_path_factory):
    return LabelledDigits(tosaic, tmp_path_factory.mktemp("swept"), count=20)


def run(*words, rc=0):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600)
    assert done.returncode == rc, done.stderr
    return done


def swept(tosaic, digits, *words):
    done = run(tosaic, "sweep", digits.pt2, "--calibrate", digits.samples, *words, "--json")
    return json.loads(done.stdout)["rows"]


def test_rows_are_those_of_single_commands(tosaic, digits, tmp_path):
    rows = swept(tosaic, digits, "-t", "ethos-u55-128,ethos-u85-256", "-e", digits.npz)
    assert [(r["target"], r["precision"]) for r in rows] == [
        (t, p) for t in ("ethos-u55-128", "ethos-u85-256") for p in ("int8", "int16x8")]
    for row in rows[:3]:
        pte = tmp_path / "one.pte"
        told = json.loads(run(tosaic, "compile", digits.pt2, "--calibrate", digits.samples, "-t", row["target"], "--quantize",
                              row["precision"], "-o", pte, "--json").stdout)
        estimate = told["estimates"][0]
        assert row["cycles"] == pytest.approx(estimate["cycles"]) and row["sram_bytes"] == pytest.approx(estimate["sram_bytes"])
        assert row["program_bytes"] == pte.stat().st_size and row["problem"] is None
        found = json.loads(run(tosaic, "evaluate", pte, "-d", digits.npz, "-f", digits.pt2, "--json").stdout)
        assert row["right"] == found["right"]["top1"] and row["snr_db"] == pytest.approx(found["outputs"][0]["snr_db"], rel=1e-5)


def test_the_front_is_what_nobody_beats(tosaic, digits):
    rows = swept(tosaic, digits, "-t", "ethos-u55")
    assert len(rows) == 8 and {r["macs_per_cycle"] for r in rows} == {32, 64, 128, 256}

    def merits(r):
        return -r["macs_per_cycle"], r["inferences_per_second"], -r["sram_bytes"], r["snr_db"]

    for row in rows:
        beaten = any(all(a >= b for a, b in zip(merits(o), merits(row))) and merits(o) != merits(row) for o in rows)
        assert row["best"] == (not beaten)
    assert any(r["best"] for r in rows)


def test_boards_and_floats(tosaic, digits, tmp_path):
    rows = {(r["target"], r["precision"]): r for r in swept(tosaic, digits, "-t", "cortex-m55,vgf", "-p", "int8,int4,float")}
    folder = tmp_path / "firmware"
    run(tosaic, "compile", digits.pt2, "--calibrate", digits.samples, "-t", "cortex-m55", "--emit", f"firmware={folder}")
    memory = json.loads(next(folder.glob("*memory.json")).read_text())
    board = rows["cortex-m55", "int8"]
    assert board["flash_bytes"] == sum(memory["flash"].values()) and board["sram_bytes"] == sum(memory["ram"].values())
    assert rows["cortex-m55", "int4"]["flash_bytes"] < board["flash_bytes"] and board["cycles"] is None and not board["best"]
    assert ("cortex-m55", "float") not in rows


def test_a_clock_of_ones_own(tosaic, digits):
    (row,) = swept(tosaic, digits, "-t", "ethos-u55-128", "-p", "int8", "--clock", 200)
    assert row["inferences_per_second"] == pytest.approx(200e6 / row["cycles"])


def test_what_does_not_compile_is_a_row_with_its_reason(tosaic, digits):
    rows = swept(tosaic, digits, "-t", "ethos-u55-128", "-p", "int8", "--memory-modes", "own,No_Such_Mode")
    assert rows[0]["problem"] is None and rows[0]["memory_mode"] == "Shared_Sram"
    assert "No_Such_Mode" in rows[1]["problem"] and rows[1]["program_bytes"] is None and not rows[1]["best"]


def test_files(tosaic, digits, tmp_path):
    words = [tosaic, "sweep", digits.pt2, "--calibrate", digits.samples, "-t", "ethos-u55-128,cortex-m55", "-p", "int8", "-o"]
    table = run(*words, tmp_path / "s.csv").stdout
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert [r["target"] for r in rows] == ["ethos-u55-128", "cortex-m55"] and float(rows[0]["cycles"]) > 0
    assert re.search(r"^\* +ethos-u55-128 +int8", table, re.M) and "no other is as good" in table
    run(*words, tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    assert page.startswith("<!doctype html>") and "http" not in page and page.count("<tr") == 3
    assert json.loads(run(*words, tmp_path / "s.json", "--json").stdout) .keys() == json.loads((tmp_path / "s.json").read_text()).keys()


@pytest.mark.parametrize("words, code", [
    (["-t", "ethos-u99"], "target.unknown"), (["-p", "int3"], "sweep.precision"), (["-t", "vgf", "-p", "fp16"], "sweep.nothing"),
    (["-o", "s.txt"], "usage.ending"), (["-e", "none.npz"], "file.missing")])
def test_what_is_not_there_is_refused(tosaic, digits, words, code):
    done = run(tosaic, "sweep", digits.pt2, *words, "--json", rc=2 if code.startswith("usage") else 1)
    why = json.loads(done.stderr.splitlines()[-1])
    assert why["code"] == code and why["help"]
