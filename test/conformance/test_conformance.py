# SPDX-License-Identifier: Apache-2.0
"""The small slice of the conformance sample: per operator and executor one positive test of each type, and a negative one."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_sample

ROOT = pathlib.Path(__file__).resolve().parents[2] / "build/conformance"
OPERATORS = sorted(run_sample.generation.operators_of_version())


@pytest.fixture(scope="session")
def tests():
    return run_sample.prepare("slice", ROOT)


@pytest.mark.parametrize("executor", ["interp", "cpu", "shaders"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(tosaic, tests, operator, executor):
    own = [t["folder"] for t in tests if t["operator"] == operator]
    assert own, "the generator gave no test of this operator"
    results = {folder: run_sample.run(tosaic, executor, ROOT / "slice" / folder) for folder in own}
    assert {folder: why for folder, why in results.items() if why} == {}


def test_all_operators_of_the_standard_have_tests():
    """The sample itself asserts that every type of them has."""
    assert run_sample.generation.operators_of_standard() - set(OPERATORS) == set(run_sample.generation.UNTESTED)


VARIABLES = """graph @main(%x: 3x{0}) -> (%before, %after, %both) {{
  %start: 3x{0} = constant [1, 2, 3]
  tosa.variable(%start) {{name="v", var_shape=[3], type={0}}}
  %before: 3x{0} = tosa.variable_read() {{name="v"}}
  tosa.variable_write(%x) {{name="v"}}
  %after: 3x{0} = tosa.variable_read() {{name="v"}}
  %both: 6x{0} = tosa.concat(%after, %before) {{axis=0}}
}}
"""


@pytest.mark.parametrize("executor", ["interp", "cpu", "shaders"])
@pytest.mark.parametrize("dtype", ["i8", "f16", "f32"])
def test_variable(tosaic, dtype, executor, tmp_path):
    """A read gives what the last write before it left, through a .tosa file."""
    (tmp_path / "graph.txt").write_text(VARIABLES.format(dtype))
    np.save(tmp_path / "x.npy", np.array([7, 8, 9], {"i8": np.int8, "f16": np.float16, "f32": np.float32}[dtype]))
    for command in (["convert", "graph.txt", "-o", "graph.tosa"],
                    ["run", "graph.tosa", "--input", "x.npy", *run_sample.EXECUTORS[executor], "--output-dir", "."]):
        done = subprocess.run([tosaic, *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    found = [np.load(tmp_path / f"output_{i}.npy").tolist() for i in range(3)]
    assert found == [[1, 2, 3], [7, 8, 9], [7, 8, 9, 1, 2, 3]]
