# SPDX-License-Identifier: Apache-2.0
"""Nodes that a delegate takes, in as few convex groups as possible."""

from __future__ import annotations

import operator

import torch

from . import _edge

Reasons = dict[str, str]  # by name of the node: why it stays outside


def _source(node: torch.fx.Node) -> torch.fx.Node:
    """The call that gives what a getitem picks."""
    return node.args[0] if node.target is operator.getitem else node


class Grouping:
    """Taken nodes in as few convex groups as their dependencies allow: along any path levels never fall, and the nodes
    of one odd level are one group."""

    def __init__(self, graph: torch.fx.Graph, reasons: Reasons, constants: set[str], without_inputs: bool):
        """`constants`: the names of weights; `without_inputs`: a delegate may compute what depends on weights alone."""
        self.reasons, self.constants, self.without_inputs = reasons, constants, without_inputs
        self.calls = [n for n in graph.nodes if n.op == "call_function"]
        self.groups: dict[torch.fx.Node, int] = {}

    def run(self) -> dict[torch.fx.Node, int]:
        """Group by node. Nodes at whose boundary stands a tensor that no delegate holds are put outside, with a
        reason."""
        while True:
            self._level()
            refused = {n: why for n in self.groups if (why := self._boundary(n))} or self._idle()
            if not refused:
                return self.groups
            for node, why in refused.items():  # a node with several results stays outside with all of them
                whole = _source(node)
                for name in (whole.name, *(user.name for user in whole.users if user.target is operator.getitem)):
                    self.reasons[name] = why

    def _taken(self, node: torch.fx.Node) -> bool:
        source = _source(node)
        return source.op == "call_function" and source.name not in self.reasons

    def _level(self) -> None:
        level: dict[torch.fx.Node, int] = {}
        for node in self.calls:
            parity = 1 if self._taken(node) else 0
            before = [level[i] if level[i] % 2 == parity else level[i] + 1 for i in node.all_input_nodes if i in level]
            level[node] = max([parity, *before])
        self._sink(level)
        self.groups = {n: l for n, l in level.items() if l % 2}

    def _sink(self, level: dict[torch.fx.Node, int]) -> None:
        """What converts quantised values to floats, and what becomes of a weight's, belongs to the group of its first
        reader: between groups there would be floats that an integer delegate cannot give."""
        from_weights: set[torch.fx.Node] = set()
        for node in self.calls:
            if (all(i.name in self.constants or i in from_weights for i in node.all_input_nodes)
                    and (_edge.is_dequantize(node) or any(i in from_weights for i in node.all_input_nodes))):
                from_weights.add(node)
        for node in reversed(self.calls):
            readers = [level[u] for u in node.users if u in level and not _edge.only_asserts(u)]
            if (level[node] % 2 and readers and min(readers) % 2 and isinstance(node.meta.get("val"), torch.Tensor)
                    and _source(node) is node and (node in from_weights or _edge.is_dequantize(node))):
                level[node] = min(readers)

    def _idle(self) -> Reasons:
        """Members of groups that read nothing but weights, where those may not be."""
        if self.without_inputs:
            return {}
        busy = {group for n, group in self.groups.items() for i in self._tensors_of(n)
                if i.name not in self.constants and self.groups.get(i) != group}
        return {n: "it depends on no input" for n, group in self.groups.items() if group not in busy}

    @staticmethod
    def _tensors_of(node: torch.fx.Node) -> list[torch.fx.Node]:
        return [i for i in node.all_input_nodes if _edge.body_of(i) is None]

    def _boundary(self, node: torch.fx.Node) -> str | None:
        group = self.groups[node]
        for source in self._tensors_of(node):
            if source.name not in self.constants and self.groups.get(source) != group:
                if why := _not_lent(source):
                    return f"it reads '{source.name}' from outside the delegate, {why}"
        if any(self.groups.get(user) != group for user in node.users):
            if why := _not_lent(node):
                return f"its result leaves the delegate, {why}"
        return None


def _not_lent(node: torch.fx.Node) -> str | None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None if isinstance(value, (tuple, list)) else "which is no tensor"
    if value.dtype in (torch.int64, torch.float64):
        return f"which is {value.dtype}: TOSA has no such tensors"
    if not value.is_contiguous() and not _edge.order_in_memory(value):
        return f"which is not dense in memory (strides {tuple(value.stride())})"
    return None


def components(members: frozenset) -> list[frozenset]:
    """Members that read one another, directly or through others."""
    rest, found = set(members), []
    while rest:
        part, new = set(), {next(iter(rest))}
        while new:
            part |= new
            new = {m for n in new for m in (*n.all_input_nodes, *n.users) if m in rest} - part
        rest -= part
        found.append(frozenset(part))
    return found
