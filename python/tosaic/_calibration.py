# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: what people give is told to the core call by call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from . import _core
from ._errors import Error
from ._program import Program
from ._tensors import Described, describe, number

_FORM = ("give an iterable of calls: each a tensor (the only input), a tuple of arguments, a dict of arguments by name, or both "
         "((x,), {'mask': m}); from a loader of (input, label): (x for x, _ in loader)")


def samples_for(calibration: Any, program: Program) -> dict[str, Any]:
    """By the methods' names; what the core is to refuse goes to it as it is."""
    if calibration is None:
        return {}
    if not isinstance(calibration, Mapping):
        only = len(program.methods) == 1
        return {"": _samples_of(calibration, program, program.methods[0]) if only else iter(())}
    return {str(name): _samples_of(given, program, name) if name in program.methods else iter(())
            for name, given in calibration.items() if given is not None}


def _samples_of(calibration: Any, program: Program, method: str) -> Any:
    if isinstance(calibration, (str, os.PathLike)):
        return os.fspath(calibration)  # the core reads files
    if not isinstance(calibration, Iterable) or hasattr(calibration, "__dlpack__"):
        what = "one tensor" if hasattr(calibration, "__dlpack__") else f"a {type(calibration).__name__}"
        raise Error(code="calibrate.structure", message=f"calibration is {what}, not an iterable of samples",
                    help="give a list: calibration=[x]")
    return _Samples(program, method).of(calibration)


class _Samples:
    """The samples of one method."""

    def __init__(self, program: Program, method: str) -> None:
        self.call, self.arguments = program._call(method)
        self.tensors = [a.tensor for a in self.arguments if a.tensor is not None]

    def of(self, given: Iterable[Any]) -> Iterator[tuple[list[Any], list[Described]]]:
        """(objects to keep, descriptions), one sample each."""
        for place, batch in enumerate(given):
            leaves = self.leaves_of(batch)
            if self.call is not None:
                leaves = [x for x, a in zip(leaves, self.arguments) if a.tensor is not None]
            rows, owners = [], []
            for x, info in zip_longest(leaves, self.tensors):
                try:
                    is_number = type(x) in (int, float, bool) and info is not None
                    row, owner = number(x, info.dtype, len(info.dims)) if is_number else describe(x)
                except Error as why:
                    raise Error(code="calibrate.sample", message=f"sample {place}: {why}") from None
                rows.append(row)
                owners.append(owner)
            for sample in _split(rows, self.tensors):
                yield owners, sample

    def leaves_of(self, batch: Any) -> list[Any]:
        """A dict is arguments by name, or the only argument of a module that takes a dict."""
        forms = [_call_in(batch, self.call)]
        if self.call is not None and isinstance(batch, Mapping):
            forms.append(((batch,), {}))
        told = None
        for args, kwargs in forms:
            try:
                return self.call.flatten(tuple(args), kwargs) if self.call else list(args)
            except Error as why:
                told = told or why
        raise Error(code="calibrate.structure", message=f"a sample does not have the form of a call: {told}", help=_FORM)


def _call_in(batch: Any, call: Any) -> tuple[Any, dict[str, Any]]:
    """A sample's arguments by position and by name: a dict has the latter, a tuple the former and perhaps a dict of the latter
    at its end, ((x, y), {"mask": m}) or (x, y, {"mask": m})."""
    if isinstance(batch, Mapping):
        return (), dict(batch)
    if not isinstance(batch, (tuple, list)):
        return (batch,), {}
    if call is None or not call.keywords or not batch or not isinstance(batch[-1], Mapping):
        return batch, {}
    *args, last = batch
    nested = len(args) == 1 and isinstance(args[0], (tuple, list)) and len(args[0]) == call.positions
    return args[0] if nested else args, dict(last)


def _split(rows: list[Described], tensors: list[_core.TensorInfo]) -> list[list[Described]]:
    """A loader's batch as calls of the program: of inputs whose outermost size is a multiple of the program's, the same one
    of all, and that are otherwise as it takes them. Whatever else there is goes on as it is."""
    if len(rows) != len(tensors):
        return [rows]
    counts, split = set(), []
    for (_, dtype, sizes, strides), info in zip(rows, tensors):
        fixed = [d.size if d.lowest == d.size else -1 for d in info.dims]
        if dtype != info.dtype or len(sizes) != len(fixed):
            return [rows]
        whole = all(size in (have, -1) for size, have in zip(fixed, sizes))
        split.append(not whole)
        if not whole:
            if fixed[0] < 1 or sizes[0] % fixed[0] or any(s not in (have, -1) for s, have in zip(fixed[1:], sizes[1:])):
                return [rows]
            counts.add(sizes[0] // fixed[0])
    if len(counts) != 1 or min(counts) < 2:
        return [rows]
    (count,) = counts

    def part(at: int, row: Described, is_split: bool, info: _core.TensorInfo) -> Described:
        if not is_split:
            return row
        address, dtype, sizes, strides = row
        own = info.dims[0].size
        step = strides[0] if strides is not None else _elements(sizes[1:])
        return address + at * own * step * _BYTES[dtype], dtype, (own, *sizes[1:]), strides

    return [[part(at, *given) for given in zip(rows, split, tensors)] for at in range(count)]


_BYTES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e4m3": 1,
          "f8e5m2": 1, "f8ue8m0": 1}  # fmt: skip


def _elements(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
