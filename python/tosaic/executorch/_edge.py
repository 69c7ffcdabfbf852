# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's edge dialect as programs of the core: the same graph with ATen's operators and the same names."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, TensorArgument

from .. import _core, _exported

_META = ("val", "stack_trace", "nn_module_stack", "torch_fn")  # what the core reads; the rest takes long to serialise


def aten_operator(target: Any):
    """The operator behind a node's target; None: it has none (delegates, control flow)."""
    if not isinstance(target, torch._ops.OpOverload):
        target = getattr(target, "_op", target)  # of the edge dialect's
    return None if isinstance(target, torch._ops.HigherOrderOperator) else target


def _call(node: torch.fx.Node, target: Any) -> tuple[Any, tuple, dict]:
    """The call in ATen's own operators: those of dim orders are copies, whose order the boundary checks."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "dim_order_ops":
        return target, node.args, dict(node.kwargs)
    kwargs = {k: v for k, v in node.kwargs.items() if k in ("dtype", "layout", "device", "pin_memory") and v is not None}
    plain = {"_to_dim_order_copy": torch.ops.aten._to_copy.default, "_clone_dim_order": torch.ops.aten.clone.default,
             "_empty_dim_order": torch.ops.aten.empty.memory_format}[target._schema.name.split("::")[1]]
    return plain, node.args, {} if plain is torch.ops.aten.clone.default else kwargs


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _module(graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """A graph as PyTorch's serialiser takes it, without the Python code that GraphModule makes of one."""
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    module._graph = graph
    return module


def aten_graph(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[str]]:
    """The graph in ATen's operators. What has no operator is left out: its results are inputs more, whose names come
    second."""
    graph, copies, extra = torch.fx.Graph(), {}, []
    nodes = list(module.graph.nodes)
    foreign = {n for n in nodes if n.op == "get_attr" or (n.op == "call_function" and aten_operator(n.target) is None)}
    for node in nodes:
        outside = node in foreign or (node.target is operator.getitem and node.args[0] in foreign)
        if node.op == "placeholder" or (outside and _is_tensor(node)):
            copies[node] = graph.create_node("placeholder", node.name, name=node.name)
            copies[node].meta = {k: node.meta[k] for k in _META if k in node.meta}
            if outside:
                extra.append(node.name)
        elif outside:
            copies[node] = None
    for node in nodes:
        if node in copies:
            continue
        if node.op == "output":
            flat = [copies.get(n) for n in node.args[0] if isinstance(n, torch.fx.Node)]
            graph.output(tuple(n for n in flat if n is not None))
            continue
        target, args, kwargs = _call(node, aten_operator(node.target))
        copy = graph.create_node("call_function", target, torch.fx.node.map_arg(args, copies.__getitem__),
                                 torch.fx.node.map_arg(kwargs, copies.__getitem__), name=node.name)
        copy.meta = {k: node.meta[k] for k in _META if k in node.meta}
        copies[node] = copy
    return _module(graph), extra


def _filled(tensor: FakeTensor) -> torch.Tensor:
    """A weight that ExecuTorch hides from partitioners: ones are neither zero scales nor zero variances."""
    make = torch.ones if tensor.is_floating_point() else torch.zeros
    return make(tuple(tensor.shape), dtype=tensor.dtype)


class _Program:
    """What `_exported` reads of an exported program."""

    def __init__(self, graph_module, graph_signature, range_constraints, constants):
        self.graph_module, self.graph_signature = graph_module, graph_signature
        self.range_constraints, self.constants = range_constraints, constants
        self.module_call_graph: list = []
        self.state_dict: dict = {}


def held(program, name: str, known: dict[str, torch.Tensor] | None = None) -> _core.Program:
    """The core's program of an exported program in ATen's or the edge dialect. `known`: the weights, by qualified name,
    where the program has fake ones."""
    module, extra = aten_graph(program.graph_module)
    given = {n.name for n in module.graph.output_node().args[0]}
    old = program.graph_signature
    signature = ExportGraphSignature(
        [*old.input_specs, *(InputSpec(InputKind.USER_INPUT, TensorArgument(n), None) for n in extra)],
        [s for s in old.output_specs if getattr(s.arg, "name", None) in given])
    weights = {}
    for weight, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if isinstance(tensor, FakeTensor):
            tensor = known[weight] if known and weight in known else _filled(tensor)
        weights[weight] = tensor
    whole = _Program(module, signature, program.range_constraints, weights)
    return _core.Program.held(_exported._graph_json(whole), _exported._weights(whole), [], name)[0]
