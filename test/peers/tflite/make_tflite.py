# SPDX-License-Identifier: Apache-2.0
"""Makes the .tosa files of this folder: TensorFlow Lite models through Arm's converter and MLIR's serializer.

    pip install tosa-converter-for-tflite==2026.2.0     # 130 MB of MLIR, so the files are kept instead
    .venv/bin/python test/peers/tflite/make_tflite.py path/to/tosa-converter-for-tflite

The models are written here with the TFLite schema that comes with Vela; the MLIR bytecode that the converter makes of
them is made a TOSA flatbuffer by `model-converter --tosa-flatbuffer`. Weights are random, of a fixed seed; sizes are
odd, so that no constant has a multiple of eight bytes by itself.
"""
import pathlib
import subprocess
import sys
import tempfile

import flatbuffers
import numpy as np
from ethosu.vela.tflite import (
    ActivationFunctionType, AddOptions, Buffer, BuiltinOptions, ConcatenationOptions, Conv2DOptions,
    DepthwiseConv2DOptions, FullyConnectedOptions, Model, MulOptions, Operator, OperatorCode, Padding, Pool2DOptions,
    QuantizationParameters, ReshapeOptions, SoftmaxOptions, SubGraph, Tensor, TensorType)
from ethosu.vela.tflite.BuiltinOperator import BuiltinOperator as Code

HERE = pathlib.Path(__file__).resolve().parent
RELU, NONE = ActivationFunctionType.ActivationFunctionType.RELU, ActivationFunctionType.ActivationFunctionType.NONE
SAME = Padding.Padding.SAME
TYPES = {np.dtype(np.int8): TensorType.TensorType.INT8, np.dtype(np.int32): TensorType.TensorType.INT32,
         np.dtype(np.float32): TensorType.TensorType.FLOAT32}


class Network:
    """Tensors, constants and operators in order; one input, one output."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.tensors, self.operators = [], []

    def tensor(self, shape, dtype, scale=None, zero=0, data=None):
        self.tensors.append((list(shape), np.dtype(dtype), scale, zero, data))
        return len(self.tensors) - 1

    def weights(self, shape, scales, axis=0):
        return self.tensor(shape, np.int8, scales, 0, self.random.integers(-127, 128, shape, dtype=np.int8)), axis

    def bias(self, count, scales):
        return self.tensor([count], np.int32, scales, 0, self.random.integers(-900, 900, count, dtype=np.int32))

    def floats(self, *shape):
        return self.tensor(shape, np.float32, None, 0, self.random.normal(0, 0.4, shape).astype(np.float32))

    def call(self, code, inputs, output, options=None, **values):
        self.operators.append((code, inputs, output, options, values))
        return output


def text(builder, options, values):
    """The table of an operator's options; `options` is its module, named as the schema names it."""
    name = options.__name__.rsplit(".", 1)[1]
    vectors = {}
    for key, value in values.items():
        if isinstance(value, list):
            vectors[key] = builder.CreateNumpyVector(np.array(value, np.int32))
    getattr(options, name + "Start")(builder)
    for key, value in values.items():
        getattr(options, f"{name}Add{key}")(builder, vectors.get(key, value))
    return getattr(BuiltinOptions.BuiltinOptions, name), getattr(options, name + "End")(builder)


def offsets(builder, items):
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()


def quantisation(builder, scale, zero, axis):
    scales = np.atleast_1d(np.array(scale, np.float32))
    scale_vector = builder.CreateNumpyVector(scales)
    zero_vector = builder.CreateNumpyVector(np.full(len(scales), zero, np.int64))
    QuantizationParameters.QuantizationParametersStart(builder)
    QuantizationParameters.QuantizationParametersAddScale(builder, scale_vector)
    QuantizationParameters.QuantizationParametersAddZeroPoint(builder, zero_vector)
    QuantizationParameters.QuantizationParametersAddQuantizedDimension(builder, axis)
    return QuantizationParameters.QuantizationParametersEnd(builder)


def tflite(network, inputs, output, axes):
    builder = flatbuffers.Builder(0)
    buffers, tensors = [], []
    Buffer.BufferStart(builder)
    buffers.append(Buffer.BufferEnd(builder))  # number 0 is the empty one
    for i, (shape, dtype, scale, zero, data) in enumerate(network.tensors):
        number = 0
        if data is not None:
            vector = builder.CreateNumpyVector(np.ascontiguousarray(data).view(np.uint8).ravel())
            Buffer.BufferStart(builder)
            Buffer.BufferAddData(builder, vector)
            number = len(buffers)
            buffers.append(Buffer.BufferEnd(builder))
        quantised = quantisation(builder, scale, zero, axes.get(i, 0)) if scale is not None else None
        shape_vector, name = builder.CreateNumpyVector(np.array(shape, np.int32)), builder.CreateString(f"t{i}")
        Tensor.TensorStart(builder)
        Tensor.TensorAddShape(builder, shape_vector)
        Tensor.TensorAddType(builder, TYPES[dtype])
        Tensor.TensorAddBuffer(builder, number)
        Tensor.TensorAddName(builder, name)
        if quantised is not None:
            Tensor.TensorAddQuantization(builder, quantised)
        tensors.append(Tensor.TensorEnd(builder))
    codes = sorted({code for code, *_ in network.operators})
    operators = []
    for code, ins, out, options, values in network.operators:
        kind, table = text(builder, options, values) if options else (0, None)
        in_vector = builder.CreateNumpyVector(np.array(ins, np.int32))
        out_vector = builder.CreateNumpyVector(np.array([out], np.int32))
        Operator.OperatorStart(builder)
        Operator.OperatorAddOpcodeIndex(builder, codes.index(code))
        Operator.OperatorAddInputs(builder, in_vector)
        Operator.OperatorAddOutputs(builder, out_vector)
        if table is not None:
            Operator.OperatorAddBuiltinOptionsType(builder, kind)
            Operator.OperatorAddBuiltinOptions(builder, table)
        operators.append(Operator.OperatorEnd(builder))
    code_tables = []
    for code in codes:
        OperatorCode.OperatorCodeStart(builder)
        OperatorCode.OperatorCodeAddDeprecatedBuiltinCode(builder, code)
        OperatorCode.OperatorCodeAddBuiltinCode(builder, code)
        OperatorCode.OperatorCodeAddVersion(builder, 3)
        code_tables.append(OperatorCode.OperatorCodeEnd(builder))
    tensor_vector, operator_vector = offsets(builder, tensors), offsets(builder, operators)
    in_vector = builder.CreateNumpyVector(np.array(inputs, np.int32))
    out_vector = builder.CreateNumpyVector(np.array([output], np.int32))
    SubGraph.SubGraphStart(builder)
    SubGraph.SubGraphAddTensors(builder, tensor_vector)
    SubGraph.SubGraphAddInputs(builder, in_vector)
    SubGraph.SubGraphAddOutputs(builder, out_vector)
    SubGraph.SubGraphAddOperators(builder, operator_vector)
    graph = SubGraph.SubGraphEnd(builder)
    graphs, code_vector, buffer_vector = offsets(builder, [graph]), offsets(builder, code_tables), offsets(builder, buffers)
    Model.ModelStart(builder)
    Model.ModelAddVersion(builder, 3)
    Model.ModelAddOperatorCodes(builder, code_vector)
    Model.ModelAddSubgraphs(builder, graphs)
    Model.ModelAddBuffers(builder, buffer_vector)
    builder.Finish(Model.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


def window(**more):
    return dict(Padding=SAME, StrideW=1, StrideH=1, **more)


def classifier():
    """int8: convolution per channel, depthwise, sum, average pooling, dense, softmax."""
    n, axes = Network(1), {}
    image = n.tensor([1, 9, 7, 3], np.int8, 0.05, 3)
    scales = n.random.uniform(0.002, 0.01, 5)
    w, axis = n.weights([5, 3, 3, 3], scales)
    x = n.tensor([1, 9, 7, 5], np.int8, 0.1, -128)
    n.call(Code.CONV_2D, [image, w, n.bias(5, scales * 0.05)], x, Conv2DOptions, **window(
        FusedActivationFunction=RELU, DilationWFactor=1, DilationHFactor=1))
    d, axis = n.weights([1, 3, 3, 5], scales, 3)
    axes[d] = axis
    y = n.tensor([1, 9, 7, 5], np.int8, 0.2, 5)
    n.call(Code.DEPTHWISE_CONV_2D, [x, d, n.bias(5, scales * 0.1)], y, DepthwiseConv2DOptions, **window(
        FusedActivationFunction=NONE, DepthMultiplier=1, DilationWFactor=1, DilationHFactor=1))
    z = n.call(Code.ADD, [x, y], n.tensor([1, 9, 7, 5], np.int8, 0.25, -4), AddOptions, FusedActivationFunction=NONE)
    p = n.call(Code.AVERAGE_POOL_2D, [z], n.tensor([1, 3, 3, 5], np.int8, 0.25, -4), Pool2DOptions,
               Padding=SAME, StrideW=3, StrideH=3, FilterWidth=3, FilterHeight=3, FusedActivationFunction=NONE)
    shape = n.tensor([2], np.int32, None, 0, np.array([1, 45], np.int32))
    flat = n.call(Code.RESHAPE, [p, shape], n.tensor([1, 45], np.int8, 0.25, -4), ReshapeOptions, NewShape=[1, 45])
    m, _ = n.weights([11, 45], 0.004)
    scores = n.call(Code.FULLY_CONNECTED, [flat, m, n.bias(11, 0.001)], n.tensor([1, 11], np.int8, 0.3, 9),
                    FullyConnectedOptions, FusedActivationFunction=NONE)
    out = n.call(Code.SOFTMAX, [scores], n.tensor([1, 11], np.int8, 1 / 256, -128), SoftmaxOptions, Beta=1.0)
    return n, [image], out, axes


def functions():
    """int8: tables, a product, a sum with a constant, a concatenation."""
    n = Network(2)
    a = n.tensor([1, 5, 3], np.int8, 0.04, 7)
    s = n.call(Code.LOGISTIC, [a], n.tensor([1, 5, 3], np.int8, 1 / 256, -128))
    t = n.call(Code.TANH, [a], n.tensor([1, 5, 3], np.int8, 1 / 128, 0))
    m = n.call(Code.MUL, [s, t], n.tensor([1, 5, 3], np.int8, 0.03, 1), MulOptions, FusedActivationFunction=NONE)
    c = n.tensor([1, 5, 3], np.int8, 0.02, -3, n.random.integers(-128, 128, [1, 5, 3], dtype=np.int8))
    k = n.call(Code.ADD, [m, c], n.tensor([1, 5, 3], np.int8, 0.03, 1), AddOptions, FusedActivationFunction=NONE)
    out = n.call(Code.CONCATENATION, [k, m], n.tensor([1, 5, 6], np.int8, 0.03, 1), ConcatenationOptions, Axis=2,
                 FusedActivationFunction=NONE)
    return n, [a], out, {}


def floating():
    """float32: convolution, dense, softmax."""
    n = Network(3)
    image = n.tensor([1, 5, 5, 3], np.float32)
    x = n.call(Code.CONV_2D, [image, n.floats(3, 3, 3, 3), n.floats(3)], n.tensor([1, 5, 5, 3], np.float32),
               Conv2DOptions, **window(FusedActivationFunction=RELU, DilationWFactor=1, DilationHFactor=1))
    shape = n.tensor([2], np.int32, None, 0, np.array([1, 75], np.int32))
    flat = n.call(Code.RESHAPE, [x, shape], n.tensor([1, 75], np.float32), ReshapeOptions, NewShape=[1, 75])
    scores = n.call(Code.FULLY_CONNECTED, [flat, n.floats(5, 75), n.floats(5)], n.tensor([1, 5], np.float32),
                    FullyConnectedOptions, FusedActivationFunction=NONE)
    out = n.call(Code.SOFTMAX, [scores], n.tensor([1, 5], np.float32), SoftmaxOptions, Beta=1.0)
    return n, [image], out, {}


def main(converter):
    model_converter = pathlib.Path(sys.executable).parent / "model-converter"
    with tempfile.TemporaryDirectory() as folder:
        for make in (classifier, functions, floating):
            lite, mlir = (pathlib.Path(folder, make.__name__ + end) for end in (".tflite", ".mlirbc"))
            lite.write_bytes(tflite(*make()))
            subprocess.run([converter, lite, "--bytecode", "-o", mlir], check=True)
            subprocess.run([model_converter, "--tosa-flatbuffer", "--input", mlir, "--output",
                            HERE / (make.__name__ + ".tosa")], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
