# SPDX-License-Identifier: Apache-2.0
"""count_results.py DIR PART...: adds up what the parts of `make test` left; prints the failures, then "N passed, M failed".

A part leaves in DIR/PART its exit code (`exit`) and reports in JUnit's form. Three can speak of one failure: a C++
program's own report (GTEST_OUTPUT), which has its cases; ctest's, which knows how the program ended; and the part's exit
code. Each of them is a failure unless one below it has told it already, so that what fails after the report was written
(a leak at exit, a crash in a destructor), or in place of it, counts as well.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def cases(path):
    """(name, result) for each case of a report; one failure for a report that breaks off or says nothing."""
    try:
        found = list(xml.parse(path).getroot().iter("testcase"))
    except (OSError, xml.ParseError) as why:
        yield f"no whole report: {why}", FAILED
        return
    if not found:
        yield "a report without a single test", FAILED
    for case in found:
        bad = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
        yield f'{case.get("classname", "")}.{case.get("name")}', FAILED if bad else SKIPPED if skipped else PASSED


def programs(report):
    """What ctest says of each program, which failed also where ctest could not start it."""
    for case in xml.parse(report).getroot().iter("testcase"):
        yield case.get("name"), case.get("status", "fail")


def of_part(folder):
    """All that the part in `folder` has to say."""
    results = []
    for path in sorted(folder.glob("*.xml")):
        if path.name != "ctest.xml":
            results += [(f"{path.stem}: {case}", result) for case, result in cases(path)]
    if (folder / "ctest.xml").exists():
        for name, status in programs(folder / "ctest.xml"):
            own = [result for case, result in results if case.startswith(f"test_{name}: ")]
            if status != "run" and FAILED not in own:
                results.append((f"test_{name}: ended badly ({status}) with no failure in its report", FAILED))
            elif not own:
                results.append((f"test_{name}: no report", FAILED))
    try:
        code = (folder / "exit").read_text().strip()
    except OSError:
        code = "unknown"
    if code != "0" and FAILED not in [result for _, result in results]:
        results.append((f"exit code {code} with no failure in its reports", FAILED))
    if not results:
        results.append(("no report", FAILED))
    return results


def main(directory, parts):
    count = {PASSED: 0, FAILED: 0, SKIPPED: 0}
    for part in parts:
        for case, result in of_part(pathlib.Path(directory, part)):
            count[result] += 1
            if result == FAILED:
                print(f"failed: {part}: {case}")
    if count[SKIPPED]:
        print(f"{count[SKIPPED]} skipped")
    print(f"{count[PASSED]} passed, {count[FAILED]} failed")
    return bool(count[FAILED]) or not count[PASSED]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
