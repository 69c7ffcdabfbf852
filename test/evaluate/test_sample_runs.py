# SPDX-License-Identifier: Apache-2.0
"""tosaic run --samples: the outputs of a data set are those of its samples one by one, whatever runs at once."""
import json
import pathlib
import subprocess

import numpy as np
import pytest

from labelled_digits import LabelledDigits

MODELS = pathlib.Path(__file__).resolve().parent.parent / "cli/models"


@pytest.fixture(scope="module")
def digits(tosaic, tmp_path_factory):
    return LabelledDigits(tosaic, tmp_path_factory.mktemp("digits"), count=24)


def run(tosaic, *words, rc=0):
    done = subprocess.run([tosaic, "run", *map(str, words), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == rc, done.stderr
    return json.loads(done.stdout if rc == 0 else done.stderr.splitlines()[-1])


@pytest.mark.parametrize("threads", [0, 1, 5])
def test_rows_are_those_of_one_run_each(tosaic, digits, tmp_path, threads):
    said = run(tosaic, digits.pte, "--samples", digits.npz, "--threads", threads, "--output-dir", tmp_path)
    assert said["samples"] == len(said["run_seconds"]) == 24 and said["outputs"] == ["24x1x10xf32"]
    assert said["workers"] == threads or threads == 0
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy")[:, 0], digits.outputs(digits.pte))


def test_files_of_a_folder_come_in_the_order_of_their_names(tosaic, digits, tmp_path):
    (tmp_path / "in").mkdir()
    for i, image in enumerate(digits.images[:5]):
        np.save(tmp_path / f"in/{9 - i}.npy", image[None])
    run(tosaic, digits.pte, "--samples", tmp_path / "in", "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy")[:, 0], digits.outputs(digits.pte)[:5][::-1])
    (tmp_path / "in/7.npy").write_bytes(b"no array")
    why = run(tosaic, digits.pte, "--samples", tmp_path / "in", "--output-dir", tmp_path, rc=1)
    assert why["code"] == "run.rows" and "1 file cannot be read" in why["message"]
    assert np.load(tmp_path / "output_0.npy").shape == (5, 1, 10)  # what was there stays
    assert run(tosaic, digits.pte, "--samples", tmp_path / "in")["samples"] == 4


def test_outputs_that_are_no_tensors(tosaic, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(24, dtype=np.float32).reshape(3, 2, 4))
    said = run(tosaic, MODELS / "kinds.pt2", "--samples", tmp_path / "x.npy", "--output-dir", tmp_path)
    assert said["outputs"][:5] == ["3x2x4xf32", "3x2x4xf32", "None", "3xi64", "3xf64"]
    assert not (tmp_path / "output_2.npy").exists() and np.load(tmp_path / "output_3.npy").tolist() == [3, 3, 3]


def test_states_begin_anew_with_every_sample(tosaic, tmp_path):
    x = np.arange(32, dtype=np.float32).reshape(4, 2, 4)
    np.save(tmp_path / "x.npy", x)
    run(tosaic, MODELS / "mutated_buffer.pt2", "--samples", tmp_path / "x.npy", "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), x + 1)  # it has seen one


@pytest.mark.parametrize("words, code, text", [
    (["--samples", "test.npz", "--input", "x.npy"], "run.samples", "--input is for one call"),
    (["--samples", "test.npz", "--repeat", "2"], "run.samples", "--repeat is for one call"),
    (["--samples", "test.npz", "--profile"], "run.samples", "--profile is for one call"),
    (["--samples", "test.npz", "--states", "kept"], "run.samples", "--states is for one call"),
    (["--samples", "none.npz"], "file.missing", "none.npz"),
    (["--samples", "wide.npz"], "evaluate.data", "the program takes"),
])
def test_what_does_not_fit_is_refused(tosaic, digits, words, code, text):
    words = [digits.folder / word if word.endswith(".npz") else word for word in words]
    why = run(tosaic, digits.pte, *words, rc=1)
    assert why["code"] == code and text in why["message"] + why["file"] and why["help"]
