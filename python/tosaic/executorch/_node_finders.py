# SPDX-License-Identifier: Apache-2.0
"""Nodes of a graph by what the user's source calls them. Anything with `find_nodes(gm)` is a finder."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.fx import GraphModule, Node

from .._errors import CompileWarning, Error
from ._linear_norms import INSTEAD_OF


def _listed(one_or_many: Any) -> list:
    return list(one_or_many) if isinstance(one_or_many, (list, tuple, set)) else [one_or_many]


class NodeFinder:
    """Which nodes a configuration is for. Subclasses give `find_nodes`."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        """The nodes, of a graph in training IR."""
        raise NotImplementedError(f"{type(self).__name__} has no find_nodes")

    def found_none(self, model: GraphModule) -> None:
        """Called where it finds no node at all: says so, or raises."""
        warnings.warn(CompileWarning(f"{self!r} finds nothing in the program"), stacklevel=5)

    def __repr__(self) -> str:
        return type(self).__name__


class GlobalNodeFinder(NodeFinder):
    """All nodes."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        return iter(model.graph.nodes)


class InputNodeFinder(NodeFinder):
    """What the program takes."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        return (n for n in model.graph.nodes if n.op == "placeholder")


class OutputNodeFinder(NodeFinder):
    """What the program gives."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        return (n for n in model.graph.nodes if n.op == "output")


def _nothing(what: str, name: str, known: Iterable[str]) -> Error:
    close = difflib.get_close_matches(name, list(known), n=3)
    return Error(code="quantizer.names-nothing", message=f"'{name}' is no {what} of the program",
                 help=f"did you mean {', '.join(close)}?" if close else
                 "names are those of the exported program: print(exported.graph_module.graph)")


class NodeNameNodeFinder(NodeFinder):
    """Nodes by their names in the graph."""

    def __init__(self, names: str | list[str]):
        self.names = _listed(names)

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        return (n for n in model.graph.nodes if n.name in self.names)

    def found_none(self, model: GraphModule) -> None:
        raise _nothing("node", str(self.names[0]), (n.name for n in model.graph.nodes))

    def __repr__(self) -> str:
        return f"node {', '.join(self.names)}"


class NodeTargetNodeFinder(NodeFinder):
    """Calls of operators."""

    def __init__(self, targets: Any):
        self.targets = _listed(targets)

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        return (n for n in model.graph.nodes if n.meta.get(INSTEAD_OF, n.target) in self.targets)

    def __repr__(self) -> str:
        return f"operator {', '.join(map(str, self.targets))}"


def _modules(node: Node) -> list[tuple[str, Any]]:
    """The modules that a node is in, outermost first: (name, class)."""
    def plain(path: str) -> str:  # "L['self'].block.conv" or, of a re-exported graph, "block.conv"
        path = path.removeprefix("L['self']").removeprefix("self").lstrip(".")
        return path.replace("slice(None, None, None)", "")

    return [(plain(path), kind) for path, kind in node.meta.get("nn_module_stack", {}).values()]


class ModuleNameNodeFinder(NodeFinder):
    """All in the modules of these names."""

    def __init__(self, module_names: str | list[str]):
        self.names = _listed(module_names)

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        wanted = set(self.names)
        return (n for n in model.graph.nodes if any(name in wanted for name, _ in _modules(n)))

    def found_none(self, model: GraphModule) -> None:
        known = {name for n in model.graph.nodes for name, _ in _modules(n) if name}
        raise _nothing("module", str(self.names[0]), known)

    def __repr__(self) -> str:
        return f"module {', '.join(self.names)}"


class ModuleTypeNodeFinder(NodeFinder):
    """All in modules of these classes."""

    def __init__(self, module_types: Callable | list[Callable]):
        self.types = _listed(module_types)

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        wanted = {f"{t.__module__}.{t.__qualname__}" for t in self.types}

        def named(kind: Any) -> str:
            return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"

        return (n for n in model.graph.nodes if any(named(kind) in wanted for _, kind in _modules(n)))

    def __repr__(self) -> str:
        return f"module type {', '.join(t.__qualname__ for t in self.types)}"
