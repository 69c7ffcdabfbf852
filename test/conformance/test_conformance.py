# SPDX-License-Identifier: Apache-2.0
"""The small slice of the conformance sample: per operator and executor, two positive and one negative test."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_sample

ROOT = pathlib.Path(__file__).resolve().parents[2] / "build/conformance"
OPERATORS = sorted(run_sample.generation.operators_of_version())


@pytest.fixture(scope="session")
def tests():
    return run_sample.prepare("slice", ROOT)


@pytest.mark.parametrize("executor", ["interp", "cpu"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(tosaic, tests, operator, executor):
    own = [t["folder"] for t in tests if t["operator"] == operator]
    assert own, "the generator gave no test of this operator"
    results = {folder: run_sample.run(tosaic, executor, ROOT / "slice" / folder) for folder in own}
    assert {folder: why for folder, why in results.items() if why} == {}
