# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's edge dialect as programs of the core: the same graph with ATen's operators and the same names."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

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


def is_operator(node: torch.fx.Node) -> bool:
    """Not a delegate, nor control flow, nor what takes their results apart."""
    if node.op != "call_function" or aten_operator(node.target) is None:
        return False
    return node.target is not operator.getitem or is_operator(node.args[0])


def aten_graph(module: torch.fx.GraphModule, members: set[torch.fx.Node] | None = None,
               places: bool = True) -> tuple[torch.fx.GraphModule, list[str]]:
    """The graph in ATen's operators, or the part of it that `members` are. What is not in it is an input more where it is
    read; the names of those come second. `places`: with what messages say about where a node stands."""
    inside = {n for n in module.graph.nodes if is_operator(n) and (members is None or n in members)}
    meta = _META if places else ("val",)
    graph, copies, extra = torch.fx.Graph(), {}, []

    def copied(node: torch.fx.Node, op: str, target: Any, args: tuple = (), kwargs: dict | None = None) -> None:
        copies[node] = graph.create_node(op, target, args, kwargs, name=node.name)
        copies[node].name = node.name  # also "input" and "max", which a new graph would avoid
        copies[node].meta = {k: node.meta[k] for k in meta if k in node.meta}

    read = {i for n in inside for i in n.all_input_nodes}
    for node in module.graph.nodes:
        wanted = node in read or (members is None and node.op == "placeholder")
        if wanted and node not in inside:
            copied(node, "placeholder", node.name)
            if node.op != "placeholder":
                extra.append(node.name)
    for node in module.graph.nodes:
        if node in inside:
            target, args, kwargs = _call(node, aten_operator(node.target))
            copied(node, "call_function", target, torch.fx.node.map_arg(args, copies.__getitem__),
                   torch.fx.node.map_arg(kwargs, copies.__getitem__))
    if members is None:
        given = [n for n in module.graph.output_node().args[0] if isinstance(n, torch.fx.Node)]
    else:
        given = [n for n in module.graph.nodes if n in inside and _is_tensor(n) and any(user not in inside for user in n.users)]
    graph.output(tuple(copies[n] for n in given if n in copies))
    return _module(graph), extra


def _filled(tensor: FakeTensor) -> torch.Tensor:
    """A weight that ExecuTorch hides from partitioners: ones are neither zero scales nor zero variances."""
    make = torch.ones if tensor.is_floating_point() else torch.zeros
    return make(tuple(tensor.shape), dtype=tensor.dtype)


def held(program, name: str, known: dict[str, torch.Tensor] | None = None, members: set[torch.fx.Node] | None = None,
         places: bool = True) -> _core.Program:
    """The core's program of an exported program in ATen's or the edge dialect, or of the part that `members` are. `known`:
    the weights, by qualified name, where the program has fake ones."""
    module, extra = aten_graph(program.graph_module, members, places)
    takes = {n.name for n in module.graph.nodes if n.op == "placeholder"}
    old = program.graph_signature
    inputs = [s for s in old.input_specs if getattr(s.arg, "name", None) in takes or members is None]
    inputs += [InputSpec(InputKind.USER_INPUT, TensorArgument(n), None) for n in extra]
    given = [n.name for n in module.graph.output_node().args[0]]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n), None) for n in given]
    if members is None:
        outputs = [s for s in old.output_specs if getattr(s.arg, "name", None) in given]
    used = {s.target for s in inputs}
    weights = {}
    for weight, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if members is not None and weight not in used:
            continue
        if isinstance(tensor, FakeTensor):
            tensor = known[weight] if known and weight in known else _filled(tensor)
        weights[weight] = tensor
    whole = SimpleNamespace(graph_module=module, graph_signature=ExportGraphSignature(inputs, outputs),
                            range_constraints=program.range_constraints, module_call_graph=[], state_dict={},
                            constants=weights, example_inputs=None)
    return _exported.held(whole, name, only_lowerings=True)[0]  # ExecuTorch decomposes the rest
