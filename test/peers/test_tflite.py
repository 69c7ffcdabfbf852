# SPDX-License-Identifier: Apache-2.0
"""TOSA files that came from TensorFlow Lite through Arm's converter and MLIR's serializer, which pads constants to
eight bytes (tflite/make_tflite.py says how they were made), and files that this serializer makes of ours."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import reference_model
from test_tosa_programs import decibels

FILES = sorted((pathlib.Path(__file__).parent / "tflite").glob("*.tosa"))


def compare(path, tool, folder):
    taken, _ = reference_model.interface(path)
    random = np.random.default_rng(0)
    inputs = [random.integers(-128, 128, shape).astype(dtype) if np.issubdtype(dtype, np.integer)
              else random.normal(0, 1, shape).astype(dtype) for _, dtype, shape in taken]
    expected = reference_model.run(path, inputs, folder)
    for executor in ("cpu", "interp"):
        for f, e in zip(tool.run(path, inputs, folder, "--executor", executor), expected, strict=True):
            assert f.dtype == e.dtype and f.shape == e.shape
            if np.issubdtype(e.dtype, np.integer):
                np.testing.assert_array_equal(f, e, err_msg=executor)
            else:
                assert decibels(e, f - e) > 90, executor


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_born_in_tflite(path, tool, tmp_path):
    compare(path, tool, tmp_path)
    tool("convert", path, "-o", tmp_path / "again.vgf")  # the padding is gone: VGF holds what the types need


def test_by_mlirs_serializer(tool, tmp_path):
    """Our own file, read and written by Arm's converter."""
    source = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
    tool("compile", source / "digits.pt2", "--target", "tosa-int", "--calibrate", source / "digits_samples.npz",
         "--emit", f"tosa={tmp_path / 'ours.tosa'}")
    subprocess.run([pathlib.Path(sys.executable).parent / "model-converter", "--tosa-flatbuffer", "--input",
                    tmp_path / "ours.tosa", "--output", tmp_path / "theirs.tosa"], check=True)
    compare(tmp_path / "theirs.tosa", tool, tmp_path)
