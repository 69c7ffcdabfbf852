# SPDX-License-Identifier: Apache-2.0
"""PyTorch's pytrees, from the descriptions that exported programs carry: calls are taken apart and results put
together without PyTorch, as far as they are made of tuples, lists and dicts. Other containers are PyTorch's business.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from ._errors import Error

_DICTS = {"builtins.dict": dict, "collections.OrderedDict": OrderedDict}
_SEQUENCES = {"builtins.tuple": tuple, "builtins.list": list}


class Tree:
    """One description, `text` being JSON as `torch.utils._pytree.treespec_dumps` writes it."""

    def __init__(self, text: str, torch_spec: Any = None):
        """`torch_spec`: PyTorch's object, where it cannot write it (`torch.return_types.max`): no text."""
        self._text = text
        self.spec = json.loads(text)[1] if text else None
        self.foreign = _foreign_types(self.spec) if text else [str(torch_spec)]  # containers that PyTorch has to take apart
        self._torch_spec = torch_spec

    @property
    def leaves(self) -> int:
        """Their number."""
        return _count(self.spec) if self.spec else self._by_torch().num_leaves

    def unflatten(self, leaves: list[Any]):
        return self._by_torch().unflatten(leaves) if self.foreign else _unflatten(self.spec, iter(leaves))

    def flatten(self, value, what: str) -> list[Any]:
        """The leaves in order. Raises Error run.tree where `value`, called `what`, has another form."""
        if self.foreign:
            return self.flattened_by_torch(value)
        leaves: list[Any] = []
        _flatten(self.spec, value, leaves, what)
        return leaves

    def flattened_by_torch(self, value) -> list[Any]:
        """The leaves in order. Raises Error run.tree where `value` has another form."""
        from torch.utils import _pytree

        leaves, spec = _pytree.tree_flatten(value)
        if spec != self._by_torch():
            raise Error(code="run.tree", message=f"the inputs have the form {spec}, the program takes {self._by_torch()}",
                        help="call it as the exported module is called")
        return leaves

    def _by_torch(self):
        if self._torch_spec is None:
            try:
                from torch.utils import _pytree

                self._torch_spec = _pytree.treespec_loads(self._text)
            except (ImportError, NotImplementedError, KeyError, AttributeError) as why:
                raise Error(code="run.tree", message=f"values of type {self.foreign[0]} cannot be made here: {why}",
                            help="import torch and the module that registers the type first") from why
        return self._torch_spec


class Flat:
    """Without a description: a tuple of leaves, or the only one."""

    def unflatten(self, leaves: list[Any]):
        return leaves[0] if len(leaves) == 1 else tuple(leaves)


def _count(spec) -> int:
    return 1 if spec["type"] is None else sum(map(_count, spec["children_spec"]))


def _foreign_types(spec) -> list[str]:
    kind = spec["type"]
    own = [] if kind is None or kind in _DICTS or kind in _SEQUENCES else [kind]
    return own + [t for child in spec["children_spec"] for t in _foreign_types(child)]


def _wrong(place: str, found, wanted: str) -> Error:
    return Error(code="run.tree", message=f"{place or 'the call'} is {found}, the program takes {wanted}",
                 help="call it as the exported module is called")


def _flatten(spec, value, leaves: list[Any], place: str) -> None:
    kind, children = spec["type"], spec["children_spec"]
    if kind is None:
        leaves.append(value)
        return
    if kind in _DICTS:
        keys = json.loads(spec["context"])
        if not isinstance(value, dict):
            raise _wrong(place, f"a {type(value).__name__}", f"a dict with the keys {keys}")
        if len(value) != len(keys) or any(k not in value for k in keys):
            raise _wrong(place, f"given the keys {list(value)}", f"{keys}")
        for key, child in zip(keys, children):
            _flatten(child, value[key], leaves, f"{place}[{key!r}]" if place else f"argument {key!r}")
        return
    if not isinstance(value, (tuple, list)):
        raise _wrong(place, f"a {type(value).__name__}", f"a {kind.split('.')[-1]} of {len(children)}")
    if len(value) != len(children):
        what = "arguments" if not place else "items"
        raise _wrong(place, f"given {len(value)} {what}", f"{len(children)}")
    for i, (item, child) in enumerate(zip(value, children)):
        _flatten(child, item, leaves, f"{place}[{i}]" if place else f"argument {i}")


def _unflatten(spec, leaves):
    kind = spec["type"]
    if kind is None:
        return next(leaves)
    items = [_unflatten(child, leaves) for child in spec["children_spec"]]
    if kind in _DICTS:
        return _DICTS[kind](zip(json.loads(spec["context"]), items))
    return _SEQUENCES[kind](items)


class Call:
    """The form of a call: flattens (args, kwargs)."""

    def __init__(self, tree: Tree):
        self._tree = tree
        self._args, self._kwargs = tree.spec["children_spec"] if tree.spec else (None, None)
        # Most calls are tensors and nothing else.
        self._plain = (not self._tree.foreign and not self._kwargs["children_spec"]
                       and all(c["type"] is None for c in self._args["children_spec"]))

    def flatten(self, args: tuple, kwargs: dict) -> list[Any]:
        """The leaves in order. Raises Error run.tree where the call has another form."""
        if self._plain and not kwargs and len(args) == len(self._args["children_spec"]):
            return list(args)
        if self._tree.foreign:
            return self._tree.flattened_by_torch((args, kwargs))
        leaves: list[Any] = []
        if kwargs and not self._kwargs["children_spec"]:
            raise _wrong("", f"given {', '.join(kwargs)} by name", "its arguments by position, as it was exported")
        _flatten(self._args, args, leaves, "")
        if kwargs or self._kwargs["children_spec"]:
            _flatten(self._kwargs, kwargs, leaves, "")
        return leaves


def trees_of(core: Any, exported: Any = None) -> tuple[Call | None, Tree | None]:
    """How a program is called and what it returns; None: it does not say. `core` has the texts; `exported`: the
    ExportedProgram, whose descriptions PyTorch could not write."""
    taken = Tree(core.input_tree) if core.input_tree else None
    given = Tree(core.output_tree) if core.output_tree else None
    if exported is not None and taken is None and given is None:
        taken, given = Tree("", exported.call_spec.in_spec), Tree("", exported.call_spec.out_spec)
    return Call(taken) if taken else None, given
