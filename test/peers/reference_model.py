# SPDX-License-Identifier: Apache-2.0
"""Runs a .tosa file in tosa_reference_model, and reads the interface of one with the schema of tosa-tools."""
import os
import pathlib
import subprocess

import numpy as np
import tosa_reference_model
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph

PACKAGES = pathlib.Path(tosa_reference_model.__file__).resolve().parent.parent
NUMPY = {DType.BOOL: np.bool_, DType.INT8: np.int8, DType.INT16: np.int16, DType.INT32: np.int32,
         DType.INT48: np.int64, DType.FP32: np.float32, DType.FP16: np.float16}


def interface(path):
    """([(name, numpy type, shape)] of the inputs, the same of the outputs), in the file's order."""
    graph = TosaGraph.GetRootAs(pathlib.Path(path).read_bytes(), 0)
    block = graph.Regions(0).Blocks(0)
    tensors = {}
    for i in range(block.TensorsLength()):
        tensor = block.Tensors(i)
        shape = [tensor.Shape(d) for d in range(tensor.ShapeLength())]
        tensors[tensor.Name().decode()] = NUMPY.get(tensor.Type()), shape
    inputs = [block.Inputs(i).decode() for i in range(block.InputsLength())]
    outputs = [block.Outputs(i).decode() for i in range(block.OutputsLength())]
    return [(n, *tensors[n]) for n in inputs], [(n, *tensors[n]) for n in outputs]


def operators(path):
    """How often each operator number occurs in the main block."""
    block = TosaGraph.GetRootAs(pathlib.Path(path).read_bytes(), 0).Regions(0).Blocks(0)
    return [block.Operators(i).Op() for i in range(block.OperatorsLength())]


def run(path, inputs, folder):
    """The outputs of `path` on `inputs` (arrays in its order); files go to `folder`."""
    path, folder = pathlib.Path(path).resolve(), pathlib.Path(folder).resolve()
    taken, given = interface(path)
    for i, array in enumerate(inputs):
        np.save(folder / f"in_{i}.npy", array)
    command = [PACKAGES / "bin/tosa_reference_model", "--operator_fbs", PACKAGES / "bin/tosa.fbs", "--tosa_level", "NONE",
               "--tosa_file", path.name, "--flatbuffer_dir", path.parent, "--output_dir", folder,
               "--ifm_name", ",".join(name for name, *_ in taken),
               "--ifm_file", ",".join(os.path.relpath(folder / f"in_{i}.npy", path.parent) for i in range(len(inputs))),
               "--ofm_name", ",".join(name for name, *_ in given),
               "--ofm_file", ",".join(f"ref_{i}.npy" for i in range(len(given)))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"tosa_reference_model: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return [np.load(folder / f"ref_{i}.npy") for i in range(len(given))]
