# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's edge dialect as programs of the core: the same graph with ATen's operators and the same names."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

from .. import _core, _exported
from .._tensors import has_dtype

_META = ("val", "stack_trace", "nn_module_stack", "torch_fn")  # what the core reads; the rest takes long to serialise


def aten_operator(target: Any):
    """The operator of a node's target; None: it has none (delegates, control flow)."""
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


def _module(graph: torch.fx.Graph, bodies: dict[str, torch.fx.GraphModule]) -> torch.fx.GraphModule:
    """A graph as PyTorch's serialiser takes it, without the Python code that GraphModule makes of one."""
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    module._graph = graph
    graph.owning_module = module
    for name, body in bodies.items():
        setattr(module, name, body)
    return module


def body_of(node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The graph that a get_attr gives to control flow; None: it is no such node."""
    named = getattr(node.graph.owning_module, node.target, None) if node.op == "get_attr" else None
    return named if isinstance(named, torch.fx.GraphModule) else None


def bodies_of(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes that give a call its graphs, where it is control flow."""
    flows = node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator)
    return [n for n in node.all_input_nodes if body_of(n) is not None] if flows else []


def _closed(bodies: list[torch.fx.GraphModule]) -> tuple[list[torch.fx.GraphModule], dict[str, torch.fx.Node]]:
    """The graphs of one call of control flow in ATen's operators. Tensors of their own, which the edge dialect makes of
    numbers, become operands more, each of every graph: by name, the nodes that give them."""
    own: list[dict[str, torch.fx.Node]] = []  # the copies that stand for such tensors, by graph
    given: dict[str, torch.fx.Node] = {}
    made = []
    for at, body in enumerate(bodies):
        graph, copies, inner = torch.fx.Graph(), {}, {}
        own.append({})

        def constant(name, node, graph=graph, at=at):
            copy = graph.create_node("get_attr", name)
            copy.meta = {"val": node.meta["val"]}
            given[f"{at}_{name}"], own[at][f"{at}_{name}"] = node, copy
            return copy

        for node in body.graph.nodes:
            if node.op == "get_attr" and body_of(node) is None:
                copies[node] = constant(node.target, node)
                continue
            copy = copies[node] = graph.node_copy(node, copies.__getitem__)
            copy.name = node.name
            if node.op == "call_function":
                copy.target, copy.args, copy.kwargs = _call(copy, aten_operator(node.target) or node.target)
            if nested := bodies_of(node):
                closed, more = _closed([body_of(n) for n in nested])
                inner.update(zip((n.target for n in nested), closed, strict=True))
                with graph.inserting_before(copy):
                    copy.args = _also(copy.args, [constant(f"{node.name}_{name}", n) for name, n in more.items()])
        made.append(_module(graph, inner))
    for module, mine in zip(made, own, strict=True):
        last = [n for n in module.graph.nodes if n.op == "placeholder"][-1:]
        for name, node in given.items():
            with module.graph.inserting_after(last[0]) if last else module.graph.inserting_before():
                last = [module.graph.placeholder(name)]
            last[0].meta = {"val": node.meta["val"]}
            if name in mine:
                mine[name].replace_all_uses_with(last[0])
                module.graph.erase_node(mine[name])
    return made, given


def _also(args: tuple, operands: list[torch.fx.Node]) -> tuple:
    """The arguments of control flow with more operands: all kinds have them last, and give them last."""
    return (*args[:-1], [*args[-1], *operands])


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
    """Can the core be told what the call is, or what takes its results apart?"""
    return node.op == "call_function" and untold(node) is None


def untold(node: torch.fx.Node) -> str | None:
    """Why a call is no operator: another delegate, or control flow around what is none."""
    if node.target is operator.getitem:
        return untold(node.args[0]) if node.args[0].op == "call_function" else "it is no result of an operator"
    if aten_operator(node.target) is not None:
        return None
    if not (bodies := bodies_of(node)):
        return "it is no operator: other delegates stay outside"
    for n in [n for body in bodies for n in body_of(body).graph.nodes if n.op == "call_function"]:
        why = untold(n) or (f"which has {foreign_dtype(n)}" if foreign_dtype(n) else "whose size depends on values"
                            if free_unbacked_symbols(n.meta.get("val")) else None)
        if why:
            return f"its graphs hold '{n.name}', {why}"
    return None


def only_asserts(node: torch.fx.Node) -> bool:
    """It gives nothing: an assertion about a tensor's type, which the edge dialect has no more."""
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.returns


def is_dequantize(node: torch.fx.Node) -> bool:
    """PT2E's conversion of quantised values to floats."""
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
    crosses the boundary as it lies, with its sizes in that order, which is what ExecuTorch's Arm flow does as well.
    """

    def __init__(self, program, members: set[torch.fx.Node] | None, places: bool):
        """`places`: with what messages say about where a node stands."""
        self.graph, self.meta = torch.fx.Graph(), _META if places else ("val",)
        self.copies: dict[torch.fx.Node, torch.fx.Node] = {}
        self.bodies: dict[str, torch.fx.GraphModule] = {}  # of control flow, by attribute
        self.constants: dict[str, torch.Tensor] = {}  # that were its graphs' own, by placeholder
        self.extra: list[str] = []  # inputs that are none of the program's
        self.in_edge = is_edge(program)
        nodes = program.graph_module.graph.nodes
        inside = {n for n in nodes if is_operator(n) and (members is None or n in members) and not foreign_dtype(n)}
        read = {i for n in inside for i in n.all_input_nodes if body_of(i) is None}
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
                target, args, kwargs = _call(node, aten_operator(node.target) or node.target)
                more = self._bodies_of(node)
                args, kwargs = torch.fx.node.map_arg((args, kwargs), self.copies.__getitem__)
                self._copy(node, "call_function", target, _also(args, more) if more else args, kwargs)
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

    def _bodies_of(self, node: torch.fx.Node) -> list[torch.fx.Node]:
        """Takes along the graphs of control flow. The result is the operands that it has more."""
        bodies = bodies_of(node)
        for body in bodies:
            self._copy(body, "get_attr", body.target)
        closed, given = _closed([body_of(n) for n in bodies])
        self.bodies.update(zip((n.target for n in bodies), closed, strict=True))
        operands = []
        for name, constant in given.items():
            operand = self.graph.placeholder(f"{node.name}_{name}")
            operand.meta = {"val": constant.meta["val"]}
            self.constants[operand.name] = getattr(constant.graph.owning_module, constant.target)
            operands.append(operand)
        return operands

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
    inputs += [InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(n), n) for n in part.constants]
    used = {s.target for s in inputs}
    weights = {}
    for weight, tensor in [*program.state_dict.items(), *program.constants.items(), *part.constants.items()]:
        if weight not in used:
            continue
        if isinstance(tensor, FakeTensor):
            tensor = known[weight] if known and weight in known else _filled(tensor)
        weights[weight] = tensor
    whole = SimpleNamespace(graph_module=_module(part.graph, part.bodies), constants=weights, state_dict={},
                            graph_signature=ExportGraphSignature(inputs, outputs), module_call_graph=[],
                            range_constraints=program.range_constraints, example_inputs=None)
    return _exported.held(whole, name, only_lowerings=True)[0]  # ExecuTorch decomposes the rest
