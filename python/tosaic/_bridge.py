# SPDX-License-Identifier: Apache-2.0
"""The bridge for programs with operators that the core does not know: exactly those calls are replaced by what PyTorch
decomposes them into, or by what a lowering says (`tosaic.lowering`). Everything else stays as it was exported.

A call is traced by itself, on the fake tensors that the exported graph holds, with its composites kept; so no neighbour is
decomposed or functionalised as `ExportedProgram.run_decompositions` would, and pieces keep the call's name and place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true
from torch.utils import _pytree

from . import _core
from ._errors import CompileWarning, Error
from ._lowering import call_of, described, lowerings, name_of
from ._names import ORIGIN, UNDECOMPOSED

_KEPT = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn")


class _CannotSay(Exception):
    """A decomposition that does not lead to operators that the core knows."""


def _gives_tensors(node: torch.fx.Node) -> bool:
    return any(isinstance(v, torch.Tensor) for v in _pytree.tree_leaves(node.meta.get("val")))


def _is_unknown(node: torch.fx.Node) -> bool:
    return (node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and _gives_tensors(node)
            and not _core.knows(name_of(node.target)))


def _decompositions(op: Any) -> Iterator[Callable]:
    """PyTorch's: what eager mode runs where it is a composite, else the registered ones."""
    if op._can_decompose():
        yield op.decompose
    if registered := torch._decomp.get_decompositions([op]).get(op):
        yield registered
    explicit = torch._C.DispatchKey.CompositeExplicitAutograd
    if op.namespace not in ("aten", "prims"):
        return  # a custom operator's kernel may look at memory, which fake tensors have not
    if explicit in op.py_kernels:
        yield op.py_kernels[explicit]
    elif torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), explicit):
        yield lambda *args, **kwargs: op._op_dk(explicit, *args, **kwargs)


def _once(op: Any, function: Callable, inside: set) -> Callable:
    """Kernels of some operators call the operator itself, endlessly."""
    def guarded(*args, **kwargs):
        if op in inside:
            raise _CannotSay(f"the decomposition of {op.name()} calls {op.name()}")
        inside.add(op)
        try:
            return function(*args, **kwargs)
        finally:
            inside.discard(op)

    return guarded


@contextlib.contextmanager
def _faked(values: list):
    """As torch.export traces: tensors are fake, those of the user's own become constants."""
    mode = torch._guards.detect_fake_mode(values) or torch._subclasses.FakeTensorMode()
    before, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    guards = len(mode.shape_env.guards) if mode.shape_env else 0
    try:
        with mode, torch.no_grad():
            yield
    finally:
        mode.allow_non_fake_inputs = before
    if mode.shape_env and len(mode.shape_env.guards) > guards:
        raise _CannotSay(f"it is so only where {mode.shape_env.guards[guards].expr}, which is known when the program runs")


def _traced(function: Callable, node: torch.fx.Node, table: dict) -> tuple[torch.fx.GraphModule, list[torch.fx.Node]]:
    """What `function` does where the node's operator is called, and the nodes that are its inputs."""
    leaves, spec = _pytree.tree_flatten(call_of(node.target, node.args, node.kwargs))
    inputs = list(dict.fromkeys(x for x in leaves if isinstance(x, torch.fx.Node)))

    def call(*values):
        given = dict(zip(inputs, values))
        args, kwargs = _pytree.tree_unflatten([given[x] if isinstance(x, torch.fx.Node) else x for x in leaves], spec)
        result = function(*args, **kwargs)
        return result if isinstance(result, torch.Tensor) else tuple(_pytree.tree_leaves(result))

    values = [x.meta["val"] for x in inputs]
    with _faked(values):
        module = make_fx(call, decomposition_table=table, pre_dispatch=True)(*values)
    for piece in [n for n in module.graph.nodes if n.op == "call_function" and n.target is torch._C._set_grad_enabled]:
        module.graph.erase_node(piece)
    module.graph.eliminate_dead_code()
    if any(isinstance(getattr(module, n.target), torch.nn.Module) for n in module.graph.nodes if n.op == "get_attr"):
        raise _CannotSay("it has control flow")
    for piece in module.graph.nodes:
        if piece.op == "call_function" and isinstance(piece.target, torch._ops.OpOverload) and (
                piece.target._schema.is_mutable and not piece.target._schema.returns):
            raise _CannotSay(f"{piece.target.name()} returns nothing of what it makes")
    sizes = {s for n in module.graph.nodes for s in free_unbacked_symbols(n.meta.get("val"))}
    if new := sizes - {s for n in (node, *inputs) for s in free_unbacked_symbols(n.meta.get("val"))}:
        raise _CannotSay(f"it has sizes that are known when the program runs ({', '.join(map(str, new))})")
    return module, inputs


def _settled(function: Callable, node: torch.fx.Node) -> tuple[torch.fx.GraphModule, list[torch.fx.Node], set]:
    """As `_traced`, with unknown operators among the pieces decomposed in their turn; third those that remain."""
    inside: set = set()
    table, stuck = {node.target: _once(node.target, function, inside)}, set()
    users_own = function in lowerings().values()
    while True:
        # PyTorch's decompositions are called by the dispatcher, a lowering as the user's code is.
        module, inputs = _traced(table[node.target] if users_own else node.target, node, table)
        unknown = {n.target for n in module.graph.nodes if _is_unknown(n)} - stuck
        if not unknown:
            return module, inputs, stuck
        for op in unknown:
            said = lowerings().get(op) or next(_decompositions(op), None)
            if said is None or op in table:
                stuck.add(op)
            else:
                table[op] = _once(op, said, inside)


def _said_by_user(function: Callable, node: torch.fx.Node) -> tuple[torch.fx.GraphModule, list[torch.fx.Node]]:
    who = f"{described(function)}, the lowering of {node.target.name()},"
    try:
        module, inputs, _ = _settled(function, node)
    except Exception as why:
        frames = [f for f in traceback.extract_tb(why.__traceback__) if f.filename == _file_of(function)]
        at = [f"at {f.filename}:{f.lineno}: {f.line}" for f in frames[-1:]]
        said = str(why).partition("\n")[0] if isinstance(why, Error) else f"{type(why).__name__}: {why}"
        raise Error(code="lowering.failed", message=f"{who} failed: {said}", notes=at,
                    place=_place(node),
                    help="it is called with tensors that have types and sizes but no values, and must express the "
                         "operator in PyTorch's functions and TOSA's (tosaic.tosa)") from why
    given = [None if x is None else x.meta.get("val", x) if isinstance(x, torch.fx.Node) else x
             for x in _pytree.tree_leaves(module.graph.output_node().args[0])]
    wanted = _pytree.tree_leaves(node.meta["val"])
    if len(given) != len(wanted) or not all(map(_alike, given, wanted)):
        raise Error(code="lowering.result",
                    place=_place(node),
                    message=f"{who} gives {_types(given)}, but the operator says that it gives {_types(wanted)}",
                    help="the function must give what the operator's fake implementation (register_fake) gives")
    return module, inputs


def _file_of(function: Callable) -> str:
    return getattr(getattr(function, "__code__", None), "co_filename", "")


def _alike(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b)
    return a.dtype == b.dtype and len(a.shape) == len(b.shape) and all(
        statically_known_true(x == y) for x, y in zip(a.shape, b.shape))


def _types(values: list) -> str:
    texts = [f"{str(v.dtype).removeprefix('torch.')}[{', '.join(map(str, v.shape))}]" if isinstance(v, torch.Tensor)
             else type(v).__name__ for v in values]
    return ", ".join(texts) or "nothing"


def _place(node: torch.fx.Node) -> str:
    """"model.py:6", of the innermost frame outside PyTorch that the exported graph names."""
    for line in reversed((node.meta.get("stack_trace") or "").splitlines()):
        if line.strip().startswith('File "') and f"{os.sep}torch{os.sep}" not in line:
            file, number = line.strip()[6:].split('", line ')
            return f"{file}:{number.split(',')[0]}"
    return ""


def _pieces(node: torch.fx.Node, only_lowerings: bool):
    """(graph, inputs, who says it) of a call; None: it stays."""
    if function := lowerings().get(node.target):
        return *_said_by_user(function, node), f"the lowering {described(function)}"
    if only_lowerings or not _is_unknown(node):
        return None
    for function in _decompositions(node.target):
        try:
            module, inputs, stuck = _settled(function, node)
        except Exception:  # PyTorch's decompositions fail in many ways; the call then stays what it is
            continue
        if not stuck:
            return module, inputs, "PyTorch's decomposition"
    node.meta[UNDECOMPOSED] = True
    return None


class _Rewriting:
    """A graph with some of its calls decomposed; the old graph is only read."""

    def __init__(self, module: torch.fx.GraphModule, replaced: dict[torch.fx.Node, tuple]):
        self.old, self.replaced = module, replaced
        self.graph = torch.fx.Graph()
        self.copies: dict[torch.fx.Node, Any] = {}
        self.names = {n.name for n in module.graph.nodes}
        self.renamed: dict[str, str] = {}  # results that are now other nodes'
        self.constants: dict[str, torch.Tensor] = {}

    def run(self) -> torch.fx.GraphModule:
        nodes = list(self.old.graph.nodes)
        last = max((i for i, n in enumerate(nodes) if n.op == "placeholder"), default=-1)
        for node in nodes[: last + 1]:
            self._copy(node)
        for piece, (module, *_) in self.replaced.items():
            self._lift(module, piece)
        for node in nodes[last + 1 :]:
            if node in self.replaced:
                self._inline(node)
            elif node not in self.copies:
                self._copy(node)
        new = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
        new._graph = self.graph  # without the Python code that GraphModule makes of one
        self.graph.owning_module = new
        new.meta.update(self.old.meta)
        for name, child in self.old.named_children():
            setattr(new, name, child)
        return new

    def _node(self, op: str, target: Any, args: tuple, kwargs: dict, name: str, meta: dict) -> torch.fx.Node:
        node = self.graph.create_node(op, target, args, kwargs, name=name)
        node.name = name  # also "input" and "max", which a new graph would avoid
        node.meta = meta
        return node

    def _copy(self, node: torch.fx.Node) -> None:
        args = torch.fx.node.map_arg(node.args, self.copies.__getitem__)
        kwargs = torch.fx.node.map_arg(node.kwargs, self.copies.__getitem__)
        self.copies[node] = self._node(node.op, node.target, args, kwargs, node.name, node.meta)

    def _fresh(self, stem: str) -> str:
        name, count = stem, 0
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name

    def _lift(self, module: torch.fx.GraphModule, call: torch.fx.Node) -> None:
        """Tensors that the pieces hold are inputs of the program, as torch.export has them."""
        for node in [n for n in module.graph.nodes if n.op == "get_attr"]:
            tensor = getattr(module, node.target)
            name = self._fresh(f"c_{call.name}{node.target}")
            self.constants[name] = tensor
            fake = next(iter(node.users)).meta.get("val") if node.users else None
            mode = torch._guards.detect_fake_mode([fake, *(n.meta.get("val") for n in self.old.graph.nodes)])
            meta = {"val": mode.from_tensor(tensor, static_shapes=True) if mode else tensor}
            self.copies[node] = self._node("placeholder", name, (), {}, name, meta)

    def _inline(self, call: torch.fx.Node) -> None:
        module, inputs, who = self.replaced[call]
        copies = self.copies
        places = iter(inputs)
        meta = {k: call.meta[k] for k in _KEPT if k in call.meta}
        meta[ORIGIN] = (call.name, name_of(call.target), who)
        result = None
        for piece in module.graph.nodes:
            if piece.op == "placeholder":
                copies[piece] = copies[next(places)]
            elif piece.op == "output":
                result = torch.fx.node.map_arg(piece.args[0], copies.__getitem__)
            elif piece.op == "call_function":
                self.copies[piece] = self._node(
                    piece.op, piece.target, torch.fx.node.map_arg(piece.args, copies.__getitem__),
                    torch.fx.node.map_arg(piece.kwargs, copies.__getitem__), self._fresh(f"{call.name}_{piece.name}"),
                    {**meta, "val": piece.meta.get("val")})
        self._results(call, result)

    def _results(self, call: torch.fx.Node, result: Any) -> None:
        if not isinstance(result, (tuple, list)):
            self.copies[call] = result
            self.renamed[call.name] = result.name
            return
        for user in call.users:
            if user.target is not operator.getitem:
                raise _CannotSay(f"{user.name} takes all results of {call.name}")
            self.copies[user] = result[user.args[1]]
            self.renamed[user.name] = result[user.args[1]].name


def _tensors_of(program: Any) -> dict[str, torch.Tensor]:
    """By the names of placeholders: parameters, buffers that no run writes, and constants."""
    signature, found = program.graph_signature, {}
    written = {*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()}
    for spec in signature.input_specs:
        if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR) or spec.target in written:
            continue
        tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
        if type(tensor) in (torch.Tensor, torch.nn.Parameter):  # a subclass says itself what operators mean
            found[spec.arg.name] = tensor.detach()
    return found


def _of_weights(graph: torch.fx.Graph, call: torch.fx.Node, tensors: dict[str, torch.Tensor]) -> tuple | None:
    """Pieces of a call that depends on weights alone: its results, as PyTorch computes them. Parametrizations of weights
    call what no device has (an orthogonal matrix, an inverse), and no device has to."""
    needed, open_nodes = set(), [call]
    while open_nodes:
        node = open_nodes.pop()
        if node not in needed:
            needed.add(node)
            open_nodes += node.all_input_nodes
    values: dict[torch.fx.Node, Any] = {}
    for node in (n for n in graph.nodes if n in needed):
        if node.op == "placeholder" and node.name in tensors:
            values[node] = tensors[node.name]
        elif node.target is operator.getitem or (isinstance(node.target, torch._ops.OpOverload) and not (
                node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags)):
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            try:
                with torch.no_grad():
                    values[node] = node.target(*args, **kwargs)
            except Exception:  # the call then stays what it is
                return None
        else:
            return None
    module, pieces = torch.nn.Module(), torch.fx.Graph()
    results = []
    for number, value in enumerate(_pytree.tree_leaves(values[call])):
        module.register_buffer(f"_{number}", value.contiguous())
        results.append(pieces.create_node("get_attr", f"_{number}"))
    pieces.output(results[0] if isinstance(values[call], torch.Tensor) else tuple(results))
    return torch.fx.GraphModule(module, pieces), [], "PyTorch"


class Decomposed:
    """What `_exported.held` reads of an exported program."""

    def __init__(self, program: Any, graph_module: torch.fx.GraphModule, signature: ExportGraphSignature, constants: dict):
        self.graph_module, self.graph_signature, self.constants = graph_module, signature, constants
        self.range_constraints, self.state_dict = program.range_constraints, program.state_dict
        self.module_call_graph, self.example_inputs = program.module_call_graph, getattr(program, "example_inputs", None)


def _replaced(graph: torch.fx.Graph, only_lowerings: bool) -> dict[torch.fx.Node, tuple]:
    found = {}
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            if pieces := _pieces(node, only_lowerings):
                found[node] = pieces
    return found


def _body(module: torch.fx.GraphModule, only_lowerings: bool) -> torch.fx.GraphModule:
    """A body of control flow. A call in it whose pieces hold tensors stays: bodies have no constants."""
    replaced = {n: p for n, p in _replaced(module.graph, only_lowerings).items()
                if not any(x.op == "get_attr" for x in p[0].graph.nodes)}
    bodies = {name: _body(child, only_lowerings) for name, child in module.named_children()
              if isinstance(child, torch.fx.GraphModule)}
    if not replaced and all(bodies[name] is child for name, child in module.named_children() if name in bodies):
        return module
    new = _Rewriting(module, replaced).run()
    for name, body in bodies.items():
        setattr(new, name, body)
    return new


def known(program: Any, only_lowerings: bool = False) -> Any:
    """The exported program with its unknown calls decomposed; itself where there are none. `only_lowerings`: what
    PyTorch decomposes is somebody else's business.

    Raises:
        Error: lowering.failed, lowering.result.
    """
    if not only_lowerings:
        program = _written_out(program)
    module = program.graph_module
    if not _concerned(module, only_lowerings):
        return program
    replaced = _replaced(module.graph, only_lowerings)
    stay = [] if only_lowerings else [n for n in module.graph.nodes if n not in replaced and _is_unknown(n)]
    tensors = _tensors_of(program) if stay else {}
    replaced |= {node: pieces for node in stay if (pieces := _of_weights(module.graph, node, tensors))}
    bodies = {name: _body(child, only_lowerings) for name, child in module.named_children()
              if isinstance(child, torch.fx.GraphModule)}
    rewriting = _Rewriting(module, replaced)
    new = rewriting.run()
    for name, body in bodies.items():
        setattr(new, name, body)
    signature = _signature(program.graph_signature, rewriting)
    return Decomposed(program, new, signature, {**program.constants, **rewriting.constants})


def _written_out(program: Any) -> Any:
    """The program with what only the whole of it can say written out by PyTorch: the casts that autocast leaves out, and the
    running statistics that a batch norm in training mode writes."""
    if not hasattr(program, "run_decompositions"):
        return program
    nodes = list(program.graph_module.graph.nodes)
    training = [n for n in nodes if _updates_statistics(n)]
    if not training and not any(map(_leaves_casts_out, nodes)):
        return program
    try:
        written = program.run_decompositions({})
    except Exception:  # the core says what it does not take
        return program
    if any(_updates_statistics(n) or _leaves_casts_out(n) for n in written.graph_module.graph.nodes):
        return program
    if training:
        at = _place(training[0])
        warnings.warn(CompileWarning(
            (f"{at}: " if at else "") + f"warning[model.training]: {training[0].name} is in training mode: it normalises by the "
            "statistics of what it is given, and updates its running statistics in every run\n  help: export the model after "
            "eval() where that is not meant"), stacklevel=2)
    return written


def _updates_statistics(node: torch.fx.Node) -> bool:
    if node.op != "call_function" or node.target is not torch.ops.aten.batch_norm.default:
        return False
    args = call_of(node.target, node.args, node.kwargs)[0]
    return bool(args[5]) and args[3] is not None


def _leaves_casts_out(node: torch.fx.Node) -> bool:
    return (node.op == "call_function" and getattr(node.target, "__name__", "") == "wrap_with_autocast"
            and len(node.args) > 2 and node.args[2] is True)


def _concerned(module: torch.fx.GraphModule, only_lowerings: bool) -> bool:
    def concerns(node: torch.fx.Node) -> bool:
        return node.op == "call_function" and (node.target in lowerings() or (not only_lowerings and _is_unknown(node)))

    return any(map(concerns, module.graph.nodes)) or any(
        _concerned(child, only_lowerings) for child in module.children() if isinstance(child, torch.fx.GraphModule))


def _signature(old: ExportGraphSignature, rewriting: _Rewriting) -> ExportGraphSignature:
    def renamed(spec):
        name = rewriting.renamed.get(getattr(spec.arg, "name", None))
        return dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=name)) if name else spec

    constants = [InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name), name) for name in rewriting.constants]
    return ExportGraphSignature([*old.input_specs, *constants], [renamed(s) for s in old.output_specs])
