# SPDX-License-Identifier: Apache-2.0
"""TOSA 0.80's files: as Vela's reader, made from the published schema of that version, finds them, and what they compute."""
import importlib
import json

import numpy as np
import pytest
import torch
from ethosu.vela.tosa.Attribute import Attribute
from ethosu.vela.tosa.DType import DType
from ethosu.vela.tosa.Op import Op
from ethosu.vela.tosa.TosaGraph import TosaGraph
from torch import nn

OPS = {number: name for name, number in vars(Op).items() if isinstance(number, int)}
TABLES = {number: name for name, number in vars(Attribute).items() if isinstance(number, int)}
# What the fields of a table hold, by its operators.
FIELDS = {"CONV2D": ("ConvAttribute", {"Pad": 4, "Stride": 2, "Dilation": 2}),
          "DEPTHWISE_CONV2D": ("ConvAttribute", {"Pad": 4, "Stride": 2, "Dilation": 2}),
          "AVG_POOL2D": ("PoolAttribute", {"Pad": 4, "Kernel": 2, "Stride": 2}),
          "MAX_POOL2D": ("PoolAttribute", {"Pad": 4, "Kernel": 2, "Stride": 2}),
          "RESCALE": ("RescaleAttribute", {}), "CLAMP": ("ClampAttribute", {}), "RESHAPE": ("ReshapeAttribute", {}),
          "TRANSPOSE": ("TransposeAttribute", {}), "MATMUL": ("MatMulAttribute", {}), "MUL": ("MulAttribute", {}),
          "PAD": ("PadAttribute", {"PadConstFp": 4}), "TABLE": ("TableAttribute", {}), "CONCAT": ("AxisAttribute", {}),
          "REDUCE_SUM": ("AxisAttribute", {}), "REDUCE_MAX": ("AxisAttribute", {}), "SLICE": ("SliceAttribute", {}),
          "NEGATE": ("NegateAttribute", {}), "ARITHMETIC_RIGHT_SHIFT": ("ArithmeticRightShiftAttribute", {})}


def texts(count, item):
    return [item(i).decode() for i in range(count)]


def attributes(operator):
    table = TABLES[operator.AttributeType()]
    if table == "NONE":
        return table, None
    made = getattr(importlib.import_module(f"ethosu.vela.tosa.{table}"), table)()
    made.Init(operator.Attribute().Bytes, operator.Attribute().Pos)
    return table, made


def check_structure(file):
    graph = TosaGraph.GetRootAsTosaGraph(file.read_bytes(), 0)
    version = graph.Version()
    assert (version._Major(), version._Minor(), version._Patch(), version._Draft()) == (0, 80, 1, False)
    assert graph.RegionsLength() == 1 and graph.Regions(0).BlocksLength() == 1
    block = graph.Regions(0).Blocks(0)
    tensors = {block.Tensors(i).Name().decode(): block.Tensors(i) for i in range(block.TensorsLength())}
    defined = set(texts(block.InputsLength(), block.Inputs))
    for i in range(block.OperatorsLength()):
        operator = block.Operators(i)
        name = OPS[operator.Op()]
        inputs, outputs = texts(operator.InputsLength(), operator.Inputs), texts(operator.OutputsLength(), operator.Outputs)
        assert set(inputs) <= defined and len(outputs) >= 1
        defined |= set(outputs)
        assert set(outputs) <= set(tensors)
        table, made = attributes(operator)
        wanted, lengths = FIELDS.get(name, ("NONE", {}))
        assert table == wanted, name
        for field, length in lengths.items():
            assert getattr(made, field + "Length")() == length, (name, field)
        if name == "CONST":
            assert tensors[outputs[0]].DataLength() > 0
        if name == "RESCALE":
            channels = tensors[outputs[0]].ShapeAsNumpy()[-1] if made.PerChannel() else 1
            assert made.MultiplierLength() == made.ShiftLength() == channels
        if name in ("CONV2D", "DEPTHWISE_CONV2D") and tensors[inputs[0]].Type() == DType.INT8:
            assert -128 <= made.InputZp() <= 127 and made.WeightZp() == 0 and len(inputs) == 3
        if name == "TRANSPOSE":
            assert sorted(made.PermsAsNumpy()) == list(range(made.PermsLength()))
        if name == "RESHAPE":
            assert made.NewShapeAsNumpy().tolist() == tensors[outputs[0]].ShapeAsNumpy().tolist()
    assert set(texts(block.OutputsLength(), block.Outputs)) <= defined


@pytest.mark.parametrize("older, newer", [("tosa-0.80-bi", "tosa-int"), ("tosa-0.80-mi", "tosa-fp")])
def test_models(model, older, newer, tool, tmp_path):
    samples = ["--calibrate", model.samples] if newer == "tosa-int" else []
    for target in (older, newer):
        tool("compile", model.program("raw"), "--target", target, "-o", tmp_path / f"{target}.pte", "--require-full-delegation",
             "--emit", f"tosa={tmp_path / target}.tosa", *samples)
    check_structure(tmp_path / f"{older}.tosa")
    tool("extract", tmp_path / f"{older}.pte", "-o", tmp_path / "parts")
    assert (tmp_path / "parts/forward_delegate0.tosa").read_bytes() == (tmp_path / f"{older}.tosa").read_bytes()
    assert "TOSA 0.80 graph" in tool("inspect", tmp_path / f"{older}.tosa")
    inputs = model.arrays("input")[0]
    found, expected = (tool.run(tmp_path / f"{target}.pte", inputs, tmp_path) for target in (older, newer))
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)


def test_what_it_lacks_stays_outside(tool, tmp_path):
    class Waves(nn.Module):
        def forward(self, x):
            return torch.sin(x) + 1

    for name, x in (("f32", torch.randn(2, 3)), ("bf16", torch.randn(2, 3).bfloat16())):
        torch.export.save(torch.export.export(Waves(), (x,)), tmp_path / f"{name}.pt2")
        answer = json.loads(tool("explain", tmp_path / f"{name}.pt2", "--target", "tosa-0.80-mi", "--json"))
        why = {node["op"]: node.get("reason", "") for node in answer["nodes"] if node["delegate"] < 0}
        assert "aten.sin.default" in why and (name == "bf16" or "TOSA 0.80" in why["aten.sin.default"]), why
        assert answer["delegated"] == (1 if name == "f32" else 0)
