# SPDX-License-Identifier: Apache-2.0
"""A program's graph as torch.export.save writes it, in half the time.

PyTorch's serialiser does the work; the calls that nearly all nodes are (an operator on tensors, numbers and lists of whole
numbers that gives one tensor) are put into its state as the JSON that it would make of its own objects.
"""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any

import torch
from torch._export.serde import serialize

from ._names import ORIGIN, UNDECOMPOSED

_POSITIONAL, _KEYWORD = (k.value for k in (serialize.ArgumentKind.POSITIONAL, serialize.ArgumentKind.KEYWORD))


def text_of(program: Any, call_graph: list) -> str:
    """The JSON of models/model.json, with what messages need of the nodes' metadata; nodes of a decomposed call say
    which call they are."""
    serializer = serialize.GraphModuleSerializer(program.graph_signature, call_graph)
    _shorten(serializer)
    whole = serialize.ExportedProgram(
        graph_module=serializer.serialize(program.graph_module),
        opset_version={"aten": torch._C._get_max_operator_version()},
        range_constraints=serialize.serialize_range_constraints(program.range_constraints),
        schema_version=serialize.SchemaVersion(*serialize.SCHEMA_VERSION),
        verifiers=[],
        torch_version=torch.__version__,
    )
    whole.guards_code = list(getattr(program, "_guards_code", []))  # since torch 2.9
    return json.dumps(whole, default=_members, allow_nan=False)


def _members(x: Any) -> Any:
    """Of an object of PyTorch's schema, as its own encoder says them."""
    if isinstance(x, serialize._Union):
        return {x.type: _number(x.value)}
    if isinstance(x, Enum):
        return x.value
    return {name: _number(value) for name, value in vars(x).items()}


def _number(x: Any) -> Any:
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return [_number(v) for v in x] if isinstance(x, (list, tuple)) else x


def _shorten(serializer: Any) -> None:
    """PyTorch allows no class of one's own here."""
    theirs, outputs, inputs = serializer.serialize_input, serializer.serialize_outputs, serializer.serialize_inputs

    def tensor_output(name: str, value: torch.Tensor) -> Any:
        if name in serializer.graph_state.tensor_values:
            raise AssertionError(f"name {name!r} already in tensor_values")
        serializer.graph_state.tensor_values[name] = _tensor_meta(value)
        return serialize.TensorArgument(name=name)

    def outputs_of(node: torch.fx.Node) -> list:
        if isinstance(node.meta.get("val"), torch.Tensor) and len(node.target._schema.returns) == 1:
            return [{"as_tensor": {"name": tensor_output(node.name, node.meta["val"]).name}}]
        return outputs(node)

    def inputs_of(target: Any, args: tuple, kwargs: dict | None = None) -> list:
        if not isinstance(target, torch._ops.OpOverload):
            return inputs(target, args, kwargs)
        named = []
        for i, argument in enumerate(target._schema.arguments):
            if kwargs and argument.name in kwargs:
                value, kind = kwargs[argument.name], _KEYWORD
            elif not argument.kwarg_only and i < len(args):
                value, kind = args[i], _POSITIONAL
            else:
                continue
            plain = _plain(value, serializer.duplicate_getitem_nodes)
            named.append({"name": argument.name, "arg": plain or theirs(value, argument.type), "kind": kind})
        return named

    serializer.serialize_tensor_output, serializer.serialize_outputs = tensor_output, outputs_of
    serializer.serialize_inputs, serializer.serialize_metadata = inputs_of, _metadata


def _plain(x: Any, twice: dict) -> dict | None:
    """An argument of a kind that most are of."""
    kind = type(x)
    if kind is torch.fx.Node:
        simple = x.op != "get_attr" and isinstance(x.meta.get("val"), torch.Tensor) and x.name not in twice
        return {"as_tensor": {"name": x.name}} if simple else None
    if kind is int:
        return {"as_int": x}
    if kind is bool:
        return {"as_bool": x}
    if kind is float:
        return {"as_float": _number(x)}
    if kind is torch.dtype:
        return {"as_scalar_type": serialize._TORCH_TO_SERIALIZE_DTYPE[x].value}
    if x is None:
        return {"as_none": True}
    if isinstance(x, (list, tuple)) and x and all(type(v) is int for v in x):
        return {"as_ints": list(x)}
    return None


def _tensor_meta(t: torch.Tensor) -> Any:
    numbers = (*t.shape, *t.stride(), t.storage_offset())
    if not all(type(n) is int for n in numbers):
        return serialize.serialize_tensor_meta(t)
    return {"dtype": serialize._TORCH_TO_SERIALIZE_DTYPE[t.dtype].value, "sizes": [{"as_int": n} for n in t.shape],
            "requires_grad": t.requires_grad, "device": {"type": t.device.type, "index": t.device.index},
            "strides": [{"as_int": n} for n in t.stride()], "storage_offset": {"as_int": t.storage_offset()},
            "layout": serialize._TORCH_TO_SERIALIZE_LAYOUT[t.layout].value}


def _metadata(node: torch.fx.Node) -> dict[str, str]:
    metadata = {}
    if trace := node.meta.get("stack_trace"):
        metadata["stack_trace"] = trace
    if modules := node.meta.get("nn_module_stack"):
        metadata["nn_module_stack"] = ";".join(f"{key},{path},{kind}" for key, (path, kind) in modules.items())
    if function := node.meta.get("torch_fn"):
        metadata["torch_fn"] = ";".join(function)
    if ORIGIN in node.meta:
        metadata.update(zip(("exported_node", "exported_op", "decomposed_by"), node.meta[ORIGIN]))
    if UNDECOMPOSED in node.meta:
        metadata["undecomposed"] = "PyTorch"
    return metadata
