# SPDX-License-Identifier: Apache-2.0
"""The core's quantisation plan on a graph of PyTorch's: which call of the plan each node is, and composites replaced by
the operators that the plan quantises instead of them.
"""

from __future__ import annotations

import json
import operator
from collections import defaultdict
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _core
from ._prepared_program import attribute, fake_mode_of, program_of

_DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
           "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


class Place:
    """Where a node stands in a plan.

    Attributes:
        plan: of its graph.
        config: the user's for this node, or None: it stays float.
        call: the plan's call that it is, or begins; None.
        value: the id of what it gives.
    """

    def __init__(self, plan: Plan, config: Any, call: dict | None = None, value: int | None = None):
        self.plan, self.config, self.call, self.value = plan, config, call, value


class Plan:
    """A plan as the core prints it for `gm`. `key`: where in a node's meta its place stands, of one quantizer."""

    def __init__(self, gm: GraphModule, target: str, options: dict[str, list[str]], in_pieces: bool, key: str):
        self.key = key
        said = json.loads(_core.annotation(program_of(gm), target, options, in_pieces))
        self.calls: list[dict] = said["calls"]
        self.values: dict[int, dict] = {v["id"]: v for v in said["values"]}
        self.certain: dict[Any, list] = {}  # group -> ranges that its tensors have whatever the samples are
        for v in said["values"]:
            if "certain" in v:
                self.certain.setdefault(v["group"], []).append(v["certain"])
        self.by_result = {c["results"][0]: c for c in self.calls if c["results"]}
        self.named = {v["name"]: v["id"] for v in said["values"] if not v.get("inner") and "shape" not in v}

    def codes(self, value: int | None) -> str | None:
        """"i8", "i16", or None: floats, no floats at all."""
        return self.values[value].get("codes") if value in self.values else None


def tensor_operands(node: Node) -> list[Node | None]:
    """The call's tensors in the order of its schema, lists in place, None where an optional one is not given or a number stands
    for one: as the plan lists its operands."""
    found: list[Node | None] = []
    for at, argument in enumerate(node.target._schema.arguments):
        given = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name)
        kind = str(argument.type)
        if "Tensor" not in kind:
            continue
        if "List" in kind and given is not None:
            found += [x if isinstance(x, Node) else None for x in given]
        else:
            found.append(given if isinstance(given, Node) else None)
    return found


def give_places(gm: GraphModule, plan: Plan, configs: dict[Node, Any]) -> None:
    """Tells each node its place."""
    nodes = {n.name: n for n in gm.graph.nodes}
    for node in gm.graph.nodes:
        value = plan.named.get(node.name) if node.op in ("call_function", "placeholder") else None
        node.meta[plan.key] = Place(plan, configs.get(node), value=value)
    for call in plan.calls:
        if "rebuilt_with" in call:
            continue
        members = [nodes[name] for name in call.get("exported", ()) if name in nodes]
        named = [n for n in members if str(n.target).replace("_.", ".") == call["op"].replace("_.", ".")]
        if members:
            (named or members)[0].meta[plan.key].call = call


# ---- composites


class _Rebuilt:
    """Replaces one composite by the nodes of its decomposition."""

    def __init__(self, gm: GraphModule, plan: Plan, pieces: list[dict], exported: list[Node]):
        self.gm, self.plan, self.pieces = gm, plan, pieces
        order = {n: i for i, n in enumerate(gm.graph.nodes)}
        self.last = max(exported, key=order.__getitem__)
        self.whole = sorted({*exported, *(u for n in exported for u in n.users if u.target is operator.getitem)},
                            key=order.__getitem__)
        self.now: dict[int, Node] = {}
        self.made: list[Node] = []
        self.mode = fake_mode_of(gm)

    def possible(self, nodes: dict[str, Node]) -> bool:
        """Is all that they need in the graph?"""
        given = {v for piece in self.pieces for v in piece["results"]}
        for piece in self.pieces:
            if piece["rebuilt_with"] is None:
                return False
            for v in piece["operands"]:
                if v is None or v in given or "content" in self.plan.values[v]:
                    continue
                value = self.plan.values[v]
                node = nodes.get(value.get("like", value["name"]))
                if node is None:
                    return False
                self.now[v] = node
        return any(self.plan.values[v]["name"] in nodes for v in given if v is not None)

    def put(self, nodes: dict[str, Node]) -> None:
        with self.gm.graph.inserting_before(self.last):
            for piece in self.pieces:
                self._call(piece)
        for v, node in list(self.now.items()):
            old = nodes.get(self.plan.values[v]["name"])
            if node not in self.made or old is None or self.plan.values[v].get("inner"):
                continue
            old.replace_all_uses_with(node)
            nodes[old.name] = node
        for node in reversed(self.whole):
            if not node.users:  # one that only some of the pieces stand for is still read
                self.gm.graph.erase_node(node)

    def _call(self, piece: dict) -> None:
        target = torch.ops
        for part in piece["op"].split("."):
            target = getattr(target, part)
        args, kwargs = self._arguments(target._schema, piece)
        node = self.gm.graph.call_function(target, tuple(args), kwargs)
        self._describe(node)
        if len(piece["results"]) == 1 and isinstance(node.meta["val"], torch.Tensor):
            self.now[piece["results"][0]] = node
            node.meta[self.plan.key].value = piece["results"][0]
        else:
            for i, v in enumerate(piece["results"]):
                if v is not None:
                    self.now[v] = self.gm.graph.call_function(operator.getitem, (node, i))
                    self._describe(self.now[v])
                    self.now[v].meta[self.plan.key].value = v
        node.meta[self.plan.key].call = {k: x for k, x in piece.items() if k != "rebuilt_with"}

    def _describe(self, node: Node) -> None:
        of = self.last.meta
        node.meta.update({k: of[k] for k in ("nn_module_stack", "stack_trace", "source_fn_stack", "torch_fn") if k in of})
        node.meta[self.plan.key] = Place(self.plan, of[self.plan.key].config)
        values = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with self.mode:
            node.meta["val"] = node.target(*values[0], **values[1])
        self.made.append(node)

    def _arguments(self, schema, piece: dict) -> tuple[list, dict]:
        tensors = [a for a in schema.arguments if "Tensor" in str(a.type) and a.name not in piece["rebuilt_with"]]
        operands = [None if v is None else self._operand(v) for v in piece["operands"]]
        in_lists = len(operands) - sum("List" not in str(a.type) for a in tensors)
        args: list[Any] = []
        kwargs = {}
        for argument in schema.arguments:
            if argument.name in piece["rebuilt_with"]:
                given = piece["rebuilt_with"][argument.name]
                given = _DTYPES[given["dtype"]] if isinstance(given, dict) else given
                if argument.kwarg_only:
                    kwargs[argument.name] = given
                else:
                    args.append(given)
            elif argument.kwarg_only:
                continue
            elif "Tensor" not in str(argument.type):
                args.append(argument.default_value)
            elif "List" in str(argument.type):
                args.append(operands[:in_lists])
                operands = operands[in_lists:]
            else:
                args.append(operands.pop(0) if operands else None)
        return args, kwargs

    def _operand(self, v: int) -> Node:
        value = self.plan.values[v]
        if v in self.now:
            node = self.now[v]
        else:
            node = self.now[v] = self._constant(value)
        if "like" in value and tuple(node.meta["val"].shape) != tuple(value["shape"]):
            node = self.now[v] = self.gm.graph.call_function(torch.ops.aten.view.default, (node, value["shape"]))
            self._describe(node)
        return node

    def _constant(self, value: dict) -> Node:
        number = sum(1 for name, _ in self.gm.named_buffers(recurse=False) if name.startswith("_tosaic_constant"))
        name = f"_tosaic_constant_{number}"
        content = torch.frombuffer(bytearray.fromhex(value["content"]), dtype=_DTYPES[value["dtype"]])
        self.gm.register_buffer(name, content.reshape(value["shape"]).clone())
        node = self.gm.graph.create_node("get_attr", name)
        node.meta["val"] = self.mode.from_tensor(attribute(self.gm, name))
        node.meta[self.plan.key] = Place(self.plan, self.last.meta[self.plan.key].config)
        return node


def _written(plan: Plan, piece: dict) -> tuple:
    """All of a piece that could depend on sizes."""
    def operand(v):
        value = plan.values.get(v, {})
        return value.get("shape") if "like" in value or "content" in value else None, value.get("content")

    return piece["op"], piece["rebuilt_with"], [operand(v) for v in piece["operands"]]


def _at_all_sizes(plan: Plan, piece: dict, elsewhere: list[Plan] | None) -> dict | None:
    """The piece in a form that is the same there: a view leaves out the one size that varies. None: there is none."""
    if elsewhere is None:
        return None
    written = _written(plan, piece)
    others = [_written(p, p.by_result.get(piece["results"][0], piece)) for p in elsewhere]
    if piece["op"] == "aten.view.default" and all(other[0] == piece["op"] for other in others):
        lists = [piece["rebuilt_with"]["size"], *(other[1]["size"] for other in others)]
        sizes = [n[0] if len(set(n)) == 1 else -1 for n in zip(*lists, strict=False)]
        if sizes.count(-1) < 2 and len({len(n) for n in lists}) == 1:
            return {**piece, "rebuilt_with": {"size": sizes}}
    return piece if all(other == written for other in others) else None


def decompose_by_plan(gm: GraphModule, plan: Plan, elsewhere: list[Plan] | None) -> list[Node]:
    """Replaces composites by the calls that the plan has instead of them. Those that cannot be, stay whole and float. The
    result is those that stay because their pieces are others at other sizes: `elsewhere` has the program's plans there,
    as far as it has other sizes; None: it has, and no plan."""
    nodes = {n.name: n for n in gm.graph.nodes}
    composites: dict[tuple[str, ...], list[dict]] = defaultdict(list)
    owner: dict[str, tuple[str, ...]] = {}
    for call in plan.calls:
        names = tuple(call.get("exported", ()))
        if "rebuilt_with" not in call or not names:
            continue
        key = next((owner[n] for n in names if n in owner), names)
        owner.update((n, key) for n in names)
        composites[key].append(call)
    before, varying = list(gm.graph.nodes), []
    for pieces in composites.values():
        names = {n for p in pieces for n in p["exported"]}
        exported = [n for n in before if n.name in names]
        if not exported:
            continue
        rebuilt = _Rebuilt(gm, plan, pieces, exported)
        if not rebuilt.possible(nodes):
            continue
        rebuilt.pieces = [_at_all_sizes(plan, piece, elsewhere) for piece in pieces]
        if None in rebuilt.pieces:
            varying.append(rebuilt.last)
        else:
            rebuilt.put(nodes)
    gm.recompile()
    return varying
