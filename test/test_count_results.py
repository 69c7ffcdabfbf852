# SPDX-License-Identifier: Apache-2.0
"""Every way in which a part of the tests can fail is counted: real ctest and pytest runs of programs that fail so."""
import os
import pathlib
import subprocess
import sys

import pytest

COUNT = pathlib.Path(__file__).resolve().parent / "count_results.py"
REPORT = """echo '<testsuites><testsuite name="S"><testcase name="c" status="run" classname="S">{}</testcase></testsuite></testsuites>' > $REPORT"""
GOOD, BAD = REPORT.format(""), REPORT.format('<failure message="no"/>')
PROGRAMS = {  # what a C++ test program does -> what is counted
    "passes": (GOOD, (1, 0)),
    "fails": (f"{BAD}; exit 1", (0, 1)),
    "leaks_at_exit": (f"{GOOD}; exit 23", (1, 1)),
    "crashes_after_its_report": (f"{GOOD}; kill -SEGV $$", (1, 1)),
    "crashes_before_its_report": ("kill -SEGV $$", (0, 1)),
    "is_killed": ("kill -KILL $$", (0, 1)),
    "dies_writing_its_report": ("echo '<testsuites><testsuite' > $REPORT; exit 1", (0, 1)),
    "leaves_without_report": ("true", (0, 1)),
    "reports_no_test": ("echo '<testsuites></testsuites>' > $REPORT", (0, 1)),
}
TESTS = {  # a Python test file -> what is counted
    "passes": ("def test_a(): pass", (1, 0)),
    "fails": ("def test_a(): assert False", (0, 1)),
    "fails_in_teardown": ("import pytest\n@pytest.fixture\ndef x():\n  yield\n  assert False\ndef test_a(x): pass", (0, 1)),
    "dies_in_collection": ("import no_such_module", (0, 1)),
    "has_no_test": ("", (0, 1)),
    "leaves_in_the_middle": ("import os\ndef test_a(): os._exit(0)", (0, 1)),
    "is_killed": ("import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)", (0, 1)),
    "fails_at_the_end": ("import atexit, os\natexit.register(os._exit, 7)\ndef test_a(): pass", (1, 1)),
}


def counted(folder, *parts):
    done = subprocess.run([sys.executable, COUNT, folder, *parts], capture_output=True, text=True)
    passed, failed = done.stdout.splitlines()[-1].replace(",", "").split()[::2]
    assert (done.returncode != 0) == (failed != "0" or passed == "0")
    return int(passed), int(failed)


def ctest(folder, programs):
    """Runs the programs as the part "cpp" of the tests is run."""
    (folder / "cpp").mkdir(exist_ok=True)
    tests = ""
    for name, text in programs.items():
        script = folder / f"{name}.sh"
        script.write_text(f"REPORT={folder}/cpp/test_{name}.xml\n{text}\n")
        tests += f'add_test({name} "/bin/bash" "{script}")\n'
    (folder / "CTestTestfile.cmake").write_text(tests)
    done = subprocess.run(["ctest", "--test-dir", folder, "--output-junit", folder / "cpp/ctest.xml"], capture_output=True,
                          env={**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"})
    (folder / "cpp/exit").write_text(str(done.returncode))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name, tmp_path):
    text, expected = PROGRAMS[name]
    ctest(tmp_path, {name: text})
    assert counted(tmp_path, "cpp") == expected


def test_programs_beside_each_other(tmp_path):
    """What one program reports says nothing of another whose name begins alike."""
    ctest(tmp_path, {"ir": "exit 1", "ir_text": BAD + "; exit 1", "read": GOOD})
    assert counted(tmp_path, "cpp") == (1, 2)


def test_a_program_that_is_not_there(tmp_path):
    ctest(tmp_path, {"read": GOOD})
    (tmp_path / "CTestTestfile.cmake").write_text(f'add_test(gone "{tmp_path}/gone")\n'
                                                  + (tmp_path / "CTestTestfile.cmake").read_text())
    done = subprocess.run(["/usr/bin/ctest", "--test-dir", tmp_path, "--output-junit", tmp_path / "cpp/ctest.xml"],
                          capture_output=True)
    (tmp_path / "cpp/exit").write_text(str(done.returncode))
    assert counted(tmp_path, "cpp") == (1, 1)


@pytest.mark.parametrize("name", TESTS)
def test_a_file_of_python_tests(name, tmp_path):
    text, expected = TESTS[name]
    (tmp_path / "py").mkdir()
    (tmp_path / "test_it.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "test_it.py",
                           f"--junitxml={tmp_path}/py/pytest.xml"], capture_output=True, cwd=tmp_path,
                          env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    (tmp_path / "py/exit").write_text(str(done.returncode))
    assert counted(tmp_path, "py") == expected


def test_a_part_that_never_ran(tmp_path):
    (tmp_path / "py").mkdir()
    (tmp_path / "cpp").mkdir()
    ctest(tmp_path, {"read": GOOD})
    assert counted(tmp_path, "cpp", "py", "asan") == (1, 2)


def test_a_build_that_fails_before_the_tests(tmp_path):
    """make leaves an exit code and nothing else."""
    (tmp_path / "cpp").mkdir()
    (tmp_path / "cpp/exit").write_text("2\n")
    assert counted(tmp_path, "cpp") == (0, 1)
