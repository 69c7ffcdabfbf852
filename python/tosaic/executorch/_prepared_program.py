# SPDX-License-Identifier: Apache-2.0
"""The graph that PT2E hands to a quantizer, as a program of the core: weights are attributes of its module there, and
inputs of an exported program.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch._subclasses import FakeTensorMode
from torch.export.graph_signature import (ConstantArgument, ExportGraphSignature, InputKind, InputSpec, OutputKind,
                                          OutputSpec, SymIntArgument, TensorArgument)
from torch.fx import Graph, GraphModule, Node

from .. import _exported
from .._errors import Error


def holder(gm: torch.nn.Module, path: str) -> tuple[torch.nn.Module, str]:
    """The module inside that has what `path` names, and its name there."""
    *modules, name = path.split(".")
    for part in modules:
        gm = getattr(gm, part)
    return gm, name


def attribute(gm: torch.nn.Module, path: str):
    """What `path` names in the module."""
    return getattr(*holder(gm, path))


def _inferring(node: Node) -> tuple:
    """The call's arguments as inference has them: no `training`, no `train`. The plan is for the trained program."""
    args, kwargs = list(node.args), dict(node.kwargs)
    for at, argument in enumerate(node.target._schema.arguments):
        if argument.name in ("training", "train") and str(argument.type) == "bool":
            if at < len(args):
                args[at] = False
            elif argument.name in kwargs:
                kwargs[argument.name] = False
    return tuple(args), kwargs


def _argument(x):
    """What the program is called with, or gives: numbers, texts and None are fixed when a module is exported."""
    value = x.meta.get("val") if isinstance(x, Node) else x
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return SymIntArgument(name=x.name)
    if isinstance(x, Node) and not isinstance(value, (int, float, bool, str, type(None))):
        return TensorArgument(name=x.name)
    return ConstantArgument(name=x.name if isinstance(x, Node) else "", value=value)


def _varying(gm: GraphModule) -> list[torch.SymInt]:
    """The sizes of the graph's tensors that are no numbers."""
    values = [n.meta.get("val") for n in gm.graph.nodes]
    return [s for v in values if isinstance(v, torch.Tensor) for s in v.shape if isinstance(s, torch.SymInt)]


def fake_mode_of(gm: GraphModule) -> FakeTensorMode:
    """The mode of the graph's types, or a new one."""
    mode = torch._guards.detect_fake_mode([n.meta.get("val") for n in gm.graph.nodes])
    return mode or FakeTensorMode(allow_non_fake_inputs=True)


def _ranges(gm: GraphModule) -> dict:
    return {symbol: size.node.shape_env.var_to_range[symbol] for size in _varying(gm)
            for symbol in size.node.expr.free_symbols}


def example_sizes(gm: GraphModule) -> dict[str, int]:
    """Of the sizes that vary, by their symbols' names: what they were when the program was exported."""
    return {str(size.node.expr): size.node.hint for size in _varying(gm)
            if size.node.expr.is_symbol and size.node.hint is not None}


def _lifted(gm: GraphModule):
    graph, now = Graph(), {}
    inputs, state = [], {}
    for node in gm.graph.find_nodes(op="get_attr"):
        value = attribute(gm, node.target)
        if not isinstance(value, torch.Tensor):
            continue  # a body of control flow
        now[node] = graph.create_node("placeholder", node.name, name=node.name)
        now[node].meta = {**node.meta, "val": node.meta.get("val", value)}
        kind = InputKind.PARAMETER if isinstance(value, torch.nn.Parameter) else InputKind.BUFFER
        inputs.append(InputSpec(kind, TensorArgument(name=node.name), node.target,
                                None if kind == InputKind.PARAMETER else True))
        state[node.target] = value
    outputs = []
    for node in gm.graph.nodes:
        if node in now or (node.op == "call_module" and node.target == "_guards_fn"):
            continue
        now[node] = graph.node_copy(node, lambda n: now[n])
        if node.op == "placeholder":
            inputs.append(InputSpec(InputKind.USER_INPUT, _argument(now[node]), None))
        elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            now[node].args, now[node].kwargs = _inferring(now[node])
        elif node.op == "output":
            given = now[node].args[0]
            outputs = [OutputSpec(OutputKind.USER_OUTPUT, _argument(x), None)
                       for x in (given if isinstance(given, (tuple, list)) else (given,))]
            now[node].args = (tuple(given) if isinstance(given, (tuple, list)) else (given,),)
    return graph, ExportGraphSignature(inputs, outputs), state


_GIVE = "give prepare_pt2e what torch.export.export(model, inputs).module() gives"


def check_exported(gm) -> None:
    """Is it a graph that PT2E takes? Raises Error."""
    if not isinstance(gm, GraphModule):
        raise Error(code="quantizer.program", message=f"a {type(gm).__qualname__} is no exported graph", help=_GIVE)
    for node in gm.graph.nodes:
        if node.op == "placeholder" and "val" not in node.meta:
            raise Error(code="quantizer.program", message=f"the graph's input '{node.name}' has no type", help=_GIVE)
        if node.op == "call_method" or (node.op == "call_module" and node.target != "_guards_fn"):
            raise Error(code="quantizer.program", message=f"the graph calls the module '{node.target}'", help=_GIVE)


def program_of(gm: GraphModule):
    """The core's program of a prepared graph. Its tensors have the names of the graph's nodes."""
    graph, signature, state = _lifted(gm)
    return _exported.held(SimpleNamespace(
        graph_module=GraphModule(gm, graph), graph_signature=signature, module_call_graph=[], state_dict=state,
        constants={}, range_constraints=_ranges(gm), example_inputs=None), "program")[0]
