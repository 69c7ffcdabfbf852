# SPDX-License-Identifier: Apache-2.0
"""count_results.py DIR: adds up the JUnit files under DIR; prints the failures, then "N passed, M failed".

A C++ test program reports its cases itself (GTEST_OUTPUT); ctest's own file is read too, so that a program that
crashed, and therefore reported nothing, counts as one failure.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def cases(path):
    for case in xml.parse(path).getroot().iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
        yield f'{case.get("classname", "")}.{case.get("name")}', "failed" if bad else "skipped" if skipped else "passed"


def main(directory):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    expected = {"cpp/ctest.xml", "asan/ctest.xml", "pytest.xml"}
    found = {str(p.relative_to(directory)) for p in pathlib.Path(directory).rglob("*.xml")}
    for missing in sorted(expected - found):
        print(f"failed: no {missing}: that part of the tests did not run to its end")
        count["failed"] += 1
    for name in sorted(found):
        path = pathlib.Path(directory, name)
        try:
            results = list(cases(path))
        except xml.ParseError:
            results = [(f"{name} (truncated: the program died)", "failed")]
        for case, result in results:
            if path.name == "ctest.xml":
                program = case.split(".")[-1]
                reported = any(p.startswith(f"{path.parent.name}/test_{program}") for p in found)
                if reported or result != "failed":
                    continue
            count[result] += 1
            if result == "failed":
                print(f"failed: {name}: {case}")
    if count["skipped"]:
        print(f'{count["skipped"]} skipped')
    print(f'{count["passed"]} passed, {count["failed"]} failed')
    return bool(count["failed"]) or not count["passed"]


sys.exit(main(sys.argv[1]))
