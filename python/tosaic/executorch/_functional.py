# SPDX-License-Identifier: Apache-2.0
"""Writes to a tensor that is read again through another of its views, in functional form.

PT2E puts its conversions between a tensor and a view of it: what is written to the view is then written to a copy, and
whoever reads the tensor after it reads the old values. So `y[:, ::2] = x` becomes y = slice_scatter(y, x, ...) before a
program is annotated. A write whose result alone is read on (`nn.ReLU(inplace=True)`) stays as it is.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .._errors import CompileWarning, Error
from ._prepared_program import fake_mode_of

_aten = torch.ops.aten
_HELP = ("work on a copy (x = x.clone()), put parts together (torch.cat, torch.where), or give prepare_pt2e what "
         "torch.export.export(model, inputs).run_decompositions({}).module() gives")


_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
KEPT = ("nn_module_stack", "stack_trace", "source_fn_stack", "torch_fn")


def _writes(node: Node) -> bool:
    """Does the call write to its first tensor?"""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or not node.args:
        return False
    first = node.target._schema.arguments[0].alias_info
    return first is not None and first.is_write and isinstance(node.args[0], Node) and node.target is not _aten.detach_.default


def _looks_at(node: Node) -> Node | None:
    """The tensor whose memory the call's result shares."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or not node.args:
        return None
    arguments, returns = node.target._schema.arguments, node.target._schema.returns
    if len(returns) != 1 or not arguments or arguments[0].alias_info is None or returns[0].alias_info is None:
        return node.args[0] if node.target is _aten.reshape.default else None  # which copies where it must
    return node.args[0] if isinstance(node.args[0], Node) else None


def _root(node: Node) -> Node:
    while (base := _looks_at(node)) is not None:
        node = base
    return node


def _is_read_elsewhere(write: Node, order: dict[Node, int]) -> bool:
    """Is the written tensor read after the write, by another way than the call's result?"""
    root = _root(write)
    if root.op == "get_attr":
        return False  # a buffer of the module's: a state
    own, todo = {write}, [write]
    while todo:
        for user in todo.pop().users:
            if _looks_at(user) in own and user not in own:
                own.add(user)
                todo.append(user)
    aliases, todo = {root}, [root]
    while todo:
        for user in todo.pop().users:
            if _looks_at(user) is not None and _root(user) is root and user not in aliases:
                aliases.add(user)
                todo.append(user)
    return any(order[user] > order[write] and user not in aliases for alias in aliases - own for user in alias.users)


class _Functional:
    """Rewrites one graph. What a tensor holds at a time is in `now`; views are taken anew when they are read."""

    def __init__(self, gm: GraphModule) -> None:
        self.gm, self.mode = gm, fake_mode_of(gm)
        self.now: dict[Node, Node] = {}  # of tensors that own their memory
        self.taken: dict[tuple[Node, Node], Node] = {}  # (view, content of its root) -> the view of that
        self.place: Node

    def run(self) -> None:
        for node in list(self.gm.graph.nodes):
            self.place = node
            if _writes(node) and _root(node).op != "get_attr":
                self._write(node)
            elif _looks_at(node) is None or _root(node).op == "get_attr":
                node.args = torch.fx.map_arg(node.args, self._read)
                node.kwargs = torch.fx.map_arg(node.kwargs, self._read)
        for node in reversed(list(self.gm.graph.nodes)):
            if not node.users and (_writes(node) and _root(node).op != "get_attr" or _looks_at(node) is not None):
                self.gm.graph.erase_node(node)
        self.gm.recompile()

    def _read(self, node: Node) -> Node:
        """The node that has what this tensor holds now."""
        root = _root(node)
        if root not in self.now:
            return node
        if node is root:
            return self.now[root]
        base = _looks_at(node)
        if _writes(node):
            return self._read(base)
        key = (node, self.now[root])
        if key not in self.taken:
            self.taken[key] = self._call(node.target, (self._read(base), *node.args[1:]), node.kwargs, node)
        return self.taken[key]

    def _write(self, node: Node) -> None:
        root = _root(node)
        self.now.setdefault(root, root)
        target = node.args[0]
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self._read)
        content = self._functional(node, args, kwargs)
        while target is not root:
            content = self._put_back(target, content, node)
            target = _looks_at(target)
        self.now[root] = content

    def _functional(self, node: Node, args: tuple, kwargs: dict) -> Node:
        """The call's result, without writing it."""
        there = args[0].meta["val"]
        if node.target in (_aten.copy_.default, _aten.fill_.Tensor):
            content = args[1]
            if content.meta["val"].dtype != there.dtype:
                content = self._call(_aten.to.dtype, (content, there.dtype), {}, node)
            if content.meta["val"].shape != there.shape:
                content = self._call(_aten.expand.default, (content, list(there.shape)), {}, node)
            return content
        packet = getattr(_aten, node.target._schema.name.split("::")[1].removesuffix("_"), None)
        overload = getattr(packet, node.target._overloadname, None) if packet is not None else None
        if overload is None or node.target.namespace != "aten":
            raise self._refused(node, f"{node.target} writes to a tensor that is read again through another view")
        return self._call(overload, args, kwargs, node)

    def _put_back(self, view: Node, content: Node, write: Node) -> Node:
        """What the viewed tensor holds, `content` being what the view holds now."""
        if _writes(view):
            return content
        base = self._read(_looks_at(view))
        rest, target = view.args[1:], view.target
        if view.kwargs:
            rest, target = (), None
        if target is _aten.slice.Tensor:
            return self._call(_aten.slice_scatter.default, (base, content, *rest), {}, write)
        if target is _aten.select.int:
            return self._call(_aten.select_scatter.default, (base, content, *rest), {}, write)
        if target in (_aten.transpose.int, _aten.t.default, _aten.alias.default, _aten.detach.default):
            return self._call(target, (content, *rest), {}, write)
        if target is _aten.permute.default:
            count = len(rest[0])
            back = sorted(range(count), key=lambda d: rest[0][d] % count)
            return self._call(target, (content, back), {}, write)
        sizes = base.meta["val"].shape
        same = content.meta["val"].numel() == base.meta["val"].numel()
        if target in (_aten.view.default, _aten.unsqueeze.default, _aten.squeeze.dim, _aten.squeeze.default,
                      _aten.reshape.default) and same and all(type(s) is int for s in sizes):
            return self._call(_aten.view.default, (content, list(sizes)), {}, write)
        raise self._refused(write, f"what is written through {view.target} is read again through another view")

    def _call(self, target: Any, args: tuple, kwargs: dict, like: Node) -> Node:
        with self.gm.graph.inserting_before(self.place):
            node = self.gm.graph.call_function(target, tuple(args), dict(kwargs))
        node.meta.update({k: like.meta[k] for k in KEPT if k in like.meta})
        values = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with self.mode:
            node.meta["val"] = target(*values[0], **values[1])
        return node

    @staticmethod
    def _refused(node: Node, why: str) -> Error:
        trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
        return Error(code="quantizer.write", message=f"'{node.name}': {why}: PT2E would lose what is written",
                     notes=trace[-2:], help=_HELP)


def say_promotions(gm: GraphModule) -> None:
    """An integer that meets a float becomes one by a call of its own: as a float it can be quantised."""
    mode = fake_mode_of(gm)
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or torch.Tag.pointwise not in getattr(node.target, "tags", ()):
            continue
        values = {n: n.meta.get("val") for n in node.all_input_nodes}
        given = node.meta.get("val")
        if not isinstance(given, torch.Tensor) or given.dtype != torch.float32 or not any(
                isinstance(v, torch.Tensor) and v.dtype == torch.float32 for v in values.values()):
            continue
        for operand, value in values.items():
            if not isinstance(value, torch.Tensor) or value.dtype not in _INTEGERS:
                continue
            with gm.graph.inserting_before(node):
                cast = gm.graph.call_function(_aten.to.dtype, (operand, torch.float32))
            cast.meta.update({k: node.meta[k] for k in KEPT if k in node.meta})
            with mode:
                cast.meta["val"] = _aten.to.dtype(value, torch.float32)
            node.replace_input_with(operand, cast)
    gm.recompile()


def make_functional(gm: GraphModule) -> None:
    """Rewrites the graph where writes would be lost. Raises Error quantizer.write where it cannot."""
    order = {node: at for at, node in enumerate(gm.graph.nodes)}
    for name in sorted({_root(node).name for node in order if _writes(node) and _root(node).op == "placeholder"}):
        warnings.warn(CompileWarning(f"the module writes to its input '{name}': the quantised program leaves the caller's tensor as "
                                     "it is; x = x.clone() in forward() says so"), stacklevel=5)
    if any(_writes(node) and _is_read_elsewhere(node, order) for node in order):
        _Functional(gm).run()
