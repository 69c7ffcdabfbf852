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
from .._tensors import has_dtype

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


def is_edge(program) -> bool:
    """Has it been lowered to the edge dialect?"""
    return any(type(n.target).__name__ == "EdgeOpOverload" or "executorch_call_delegate" in str(n.target)
               for n in program.graph.nodes)


def foreign_dtype(node: torch.fx.Node) -> torch.dtype | None:
    """Of a tensor that a node reads or gives: one that the core has no tensors of (complex64, float8_e8m0fnu)."""
    dtypes = (x.dtype for value in (node, *node.all_input_nodes) for x in _tensors_of(value))
    return next((d for d in dtypes if not has_dtype(d)), None)


def _tensors_of(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    return [v for v in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(v, torch.Tensor)]


def is_operator(node: torch.fx.Node) -> bool:
    """Not a delegate, nor control flow, nor what takes their results apart."""
    if node.op != "call_function" or aten_operator(node.target) is None:
        return False
    return node.target is not operator.getitem or is_operator(node.args[0])


def only_asserts(node: torch.fx.Node) -> bool:
    """It gives nothing: an assertion about a tensor's type, which the edge dialect has no more."""
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.returns


def is_dequantize(node: torch.fx.Node) -> bool:
    """PT2E's conversion of codes to floats."""
    return "quantized_decomposed.dequantize" in str(node.target)


def order_in_memory(value: Any) -> list[int] | None:
    """The dims of a dense tensor as they lie, outermost first, where that is not their own order."""
    if not isinstance(value, torch.Tensor) or value.is_contiguous():
        return None
    order = list(value.dim_order())
    return order if value.permute(order).is_contiguous() else None


class _Part:
    """The graph in ATen's operators, or the part of it that `members` are.

    What is not in it is an input more where it is read. Payloads know row-major tensors alone: a tensor of another order
    crosses the border as it lies, with its sizes in that order, which is what ExecuTorch's Arm flow does as well.
    """

    def __init__(self, program, members: set[torch.fx.Node] | None, places: bool):
        """`places`: with what messages say about where a node stands."""
        self.graph, self.meta = torch.fx.Graph(), _META if places else ("val",)
        self.copies: dict[torch.fx.Node, torch.fx.Node] = {}
        self.extra: list[str] = []  # inputs that are none of the program's
        self.in_edge = is_edge(program)
        nodes = program.graph_module.graph.nodes
        inside = {n for n in nodes if is_operator(n) and (members is None or n in members) and not foreign_dtype(n)}
        read = {i for n in inside for i in n.all_input_nodes}
        free = {s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT}
        for node in nodes:
            if node not in inside and (node in read or (members is None and node.op == "placeholder"
                                                        and not foreign_dtype(node))):
                self._copy(node, "placeholder", node.name)
                if node.op != "placeholder":
                    self.extra.append(node.name)
                if node.op != "placeholder" or node.name in free:
                    self._enter(node)
        for node in nodes:
            if node in inside:
                target, args, kwargs = _call(node, aten_operator(node.target))
                self._copy(node, "call_function", target, torch.fx.node.map_arg(args, self.copies.__getitem__),
                           torch.fx.node.map_arg(kwargs, self.copies.__getitem__))
        if members is None:
            given = [n for n in module_outputs(program) if n in self.copies]
        else:
            given = [n for n in nodes if n in inside and _is_tensor(n)
                     and any(user not in inside and not (is_dequantize(n) and only_asserts(user)) for user in n.users)]
        self.results = {n.name: self._leave(n) for n in given}  # by the name of what is given
        self.graph.output(tuple(self.results[n.name] for n in given))

    def _copy(self, node: torch.fx.Node, op: str, target: Any, args: tuple = (), kwargs: dict | None = None) -> None:
        copy = self.copies[node] = self.graph.create_node(op, target, args, kwargs, name=node.name)
        copy.name = node.name  # also "input" and "max", which a new graph would avoid
        copy.meta = {k: node.meta[k] for k in self.meta if k in node.meta}

    def _permuted(self, node: torch.fx.Node, value: torch.Tensor, order: list[int]) -> torch.fx.Node:
        copy = self.graph.call_function(torch.ops.aten.permute.default, (node, order))
        copy.meta = {**node.meta, "val": value}
        return copy

    def _order(self, node: torch.fx.Node) -> list[int] | None:
        """Of what ATen's views give nothing is known: the edge dialect makes copies of them."""
        return order_in_memory(node.meta.get("val")) if self.in_edge or node.op == "placeholder" else None

    def _enter(self, node: torch.fx.Node) -> None:
        value, order = node.meta.get("val"), self._order(node)
        if order:
            lying = self.copies[node]
            lying.meta["val"] = value.permute(order)
            self.copies[node] = self._permuted(lying, value, [order.index(d) for d in range(len(order))])

    def _leave(self, node: torch.fx.Node) -> torch.fx.Node:
        value, order = node.meta.get("val"), self._order(node)
        return self._permuted(self.copies[node], value.permute(order), order) if order else self.copies[node]


def module_outputs(program) -> list[torch.fx.Node]:
    """The nodes that a program gives."""
    return [n for n in program.graph_module.graph.output_node().args[0] if isinstance(n, torch.fx.Node)]


def _filled(tensor: FakeTensor) -> torch.Tensor:
    """A weight that ExecuTorch hides from partitioners: ones are neither zero scales nor zero variances."""
    make = torch.ones if tensor.is_floating_point() else torch.zeros
    return make(tuple(tensor.shape), dtype=tensor.dtype)


def held(program, name: str, known: dict[str, torch.Tensor] | None = None, members: set[torch.fx.Node] | None = None,
         places: bool = True) -> _core.Program:
    """The core's program of an exported program in ATen's or the edge dialect, or of the part that `members` are. `known`:
    the weights, by qualified name, where the program has fake ones."""
    with _exported.uncollected():
        return _held(program, name, known, members, places)


def _held(program, name: str, known: dict[str, torch.Tensor] | None, members: set[torch.fx.Node] | None,
          places: bool) -> _core.Program:
    part = _Part(program, members, places)
    takes = {n.name for n in part.graph.nodes if n.op == "placeholder"}
    old = program.graph_signature
    inputs = [s for s in old.input_specs if getattr(s.arg, "name", None) in takes]
    inputs += [InputSpec(InputKind.USER_INPUT, TensorArgument(n), None) for n in part.extra]
    if members is None:
        outputs = [OutputSpec(s.kind, TensorArgument(part.results[s.arg.name].name), s.target) for s in old.output_specs
                   if getattr(s.arg, "name", None) in part.results]
    else:
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n.name), None) for n in part.results.values()]
    used = {s.target for s in inputs}
    weights = {}
    for weight, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if weight not in used:
            continue
        if isinstance(tensor, FakeTensor):
            tensor = known[weight] if known and weight in known else _filled(tensor)
        weights[weight] = tensor
    whole = SimpleNamespace(graph_module=_module(part.graph), graph_signature=ExportGraphSignature(inputs, outputs),
                            range_constraints=program.range_constraints, module_call_graph=[], state_dict={},
                            constants=weights, example_inputs=None)
    return _exported.held(whole, name, only_lowerings=True)[0]  # ExecuTorch decomposes the rest
