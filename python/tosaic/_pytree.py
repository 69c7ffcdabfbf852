# SPDX-License-Identifier: Apache-2.0
"""PyTorch's pytrees, from the descriptions that exported programs carry: calls are taken apart and results put
together without PyTorch, as far as they are made of tuples, lists and dicts. Other containers are PyTorch's business.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, Callable

from ._errors import Error

_DICTS = {"builtins.dict": dict, "collections.OrderedDict": OrderedDict}
_SEQUENCES = {"builtins.tuple": tuple, "builtins.list": list}


class Tree:
    """One description, `text` being JSON as `torch.utils._pytree.treespec_dumps` writes it."""

    def __init__(self, text: str):
        self._text = text
        self._spec = json.loads(text)[1]
        self._foreign = _foreign_types(self._spec)
        self.leaves = _count(self._spec)
        self._torch_spec = None

    def flatten(self, value) -> list[Any]:
        """The leaves in order. Raises Error run.tree where `value` has another form."""
        leaves: list[Any] = []
        if self._foreign:
            return self._flattened_by_torch(value)
        _flatten(self._spec, value, leaves, "")
        return leaves

    def unflatten(self, leaves: list[Any]):
        if self._foreign:
            return self._by_torch().unflatten(leaves) if hasattr(self._by_torch(), "unflatten") else None
        return _unflatten(self._spec, iter(leaves))

    def _by_torch(self):
        if self._torch_spec is None:
            try:
                from torch.utils import _pytree

                self._torch_spec = _pytree.treespec_loads(self._text)
            except (ImportError, NotImplementedError, KeyError, AttributeError) as why:
                raise Error(code="run.tree", message=f"values of type {self._foreign[0]} cannot be made here: {why}",
                            help="import torch and the module that registers the type first") from why
        return self._torch_spec

    def _flattened_by_torch(self, value) -> list[Any]:
        from torch.utils import _pytree

        leaves, spec = _pytree.tree_flatten(value)
        if spec != self._by_torch():
            raise Error(code="run.tree", message=f"the inputs have the form {spec}, the program takes {self._by_torch()}")
        return leaves


class Flat:
    """Without a description: a tuple of leaves, or the only one."""

    def __init__(self, leaves: int):
        self.leaves = leaves

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

    def __init__(self, text: str):
        self._tree = Tree(text)
        self.leaves = self._tree.leaves
        args, kwargs = self._tree._spec["children_spec"]
        self._args = len(args["children_spec"])
        # Most calls are tensors and nothing else.
        self._plain = (not self._tree._foreign and not kwargs["children_spec"]
                       and all(c["type"] is None for c in args["children_spec"]))

    def flatten(self, args: tuple, kwargs: dict) -> list[Any]:
        if self._plain and not kwargs and len(args) == self._args:
            return list(args)
        spec = self._tree._spec["children_spec"]
        if self._tree._foreign:
            return self._tree.flatten((args, kwargs))
        leaves: list[Any] = []
        _flatten(spec[0], args, leaves, "")
        if kwargs or spec[1]["children_spec"]:
            _flatten(spec[1], kwargs, leaves, "")
        return leaves


def call_of(text: str) -> Callable | Call | None:
    return Call(text) if text else None
