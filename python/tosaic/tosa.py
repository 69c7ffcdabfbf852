# SPDX-License-Identifier: Apache-2.0
"""TOSA's operators as functions, for lowerings of custom operators: what PyTorch's own cannot say.

    @tosaic.lowering("mylib::leading_zeros")
    def leading_zeros(x):                       # i32 in, i32 out
        return tosaic.tosa.clz(x)

Every operator of TOSA that takes and gives tensors is here, with the operands and attributes of the standard by its names;
`help(tosaic.tosa.conv2d)` lists them. They may stand among PyTorch's functions. Types and sizes of results, and what an
operator refuses, are the core's: nothing is broadcast over ranks or converted. Numbers and lists are taken for operands
that must be constants. Called with tensors that have numbers, an operator computes, by its reference arithmetic.

In integer programs floats become codes as everywhere: a function of one tensor, element by element, is a table, what only
chooses among elements keeps codes; the other operators on floats stay outside the delegate. Operators on integers mean
these integers, zero points and scales as they are given.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._errors import Error
from ._tensors import _THEIR_NAMES, _to_torch, describe, torch_name

_operators: dict[str, Operator] = {}
_library: Any = None  # torch's registrations, while they are to hold


class Operator:
    """An operator of TOSA. A call takes its operands in order or by name, and its attributes by name."""

    def __init__(self, row: _core.TosaOperator):
        import inspect  # takes its time

        self.row, self.__name__, self.__qualname__ = row, row.name, row.name
        arguments, parameters = row.schemas[0].partition("(")[2].rpartition(") -> ")[0].split(", "), []
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        for argument in arguments:
            if argument == "*":
                kind = inspect.Parameter.KEYWORD_ONLY
                continue
            annotation, _, name = argument.partition(" ")
            name, _, default = name.partition("=")
            value = {"": inspect.Parameter.empty, "None": None}.get(default, default.strip("'"))
            parameters.append(inspect.Parameter(name, kind, default=value, annotation=annotation))
        self.__signature__ = inspect.Signature(parameters)
        takes = sorted({", ".join(f"{k} {v}" for k, v in types.items()) for types in row.types})
        self.__doc__ = f"{row.summary}.\n\n{row.schemas[0].partition('::')[2]}\n\nTypes: {'; '.join(takes)}."

    def __repr__(self) -> str:
        return f"<TOSA's {self.row.name}{self.__signature__}>"

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        import torch

        _register()
        try:
            given = self.__signature__.bind(*operands, **attributes).arguments
        except TypeError as why:
            raise TypeError(f"tosaic.tosa.{self.row.name}: {why}") from None
        tensors = {o.name: given[o.name] for o in self.row.operands if o.type != "shape"}
        for operand in self.row.operands:
            if operand.type != "shape" and not operand.list and not isinstance(given[operand.name], torch.Tensor):
                tensors[operand.name] = given[operand.name] = self._constant(operand, given)
        leaves = [x for t in tensors.values() for x in (t if isinstance(t, (list, tuple)) else [t])]
        if not leaves:
            raise TypeError(f"tosaic.tosa.{self.row.name}: {self.row.operands[0].name} is empty")
        dtypes = [x.dtype for x in leaves] + [d for d in given.values() if isinstance(d, torch.dtype)]
        overload = "default" if any(d.is_floating_point for d in dtypes) else "integer"
        return getattr(getattr(torch.ops.tosaic, self.row.name), overload)(**given)

    def _constant(self, operand: _core.TosaOperand, given: dict[str, Any]) -> Any:
        """A number or a list as a tensor of the dtype that the other operands leave."""
        import torch

        value = given[operand.name]
        if not operand.constant:
            raise TypeError(f"tosaic.tosa.{self.row.name}: {operand.name} is a {type(value).__name__}, not a tensor")
        bound = {o.type: torch_name(given[o.name].dtype) for o in self.row.operands
                 if isinstance(given[o.name], torch.Tensor)}
        if given.get("result"):
            bound[self.row.results[0].type] = torch_name(given["result"])
        rows = [r for r in self.row.types if all(r.get(v, d) == d for v, d in bound.items())]
        found = {r[operand.type] for r in rows if operand.type in r} or {operand.type}
        if len(found) != 1 or not found <= _THEIR_NAMES.keys():
            raise TypeError(f"tosaic.tosa.{self.row.name}: nothing says the dtype of {operand.name}: give a tensor")
        return torch.tensor(value, dtype=getattr(torch, _THEIR_NAMES[found.pop()])).reshape(-1)


def op(name: str, *operands: Any, **attributes: Any) -> Any:
    """A call of the operator of that name: "CLZ" or "clz".

    Raises:
        Error: tosa.operator (there is none of that name), tosa.* (a rule of the standard that does not hold).
    """
    return _named(name.lower(), Error)(*operands, **attributes)


def _named(name: str, kind: type) -> Operator:
    if not _operators:
        _operators.update((row.name, Operator(row)) for row in _core.tosa_operators())
    if name in _operators:
        return _operators[name]
    import difflib  # takes its time

    near = difflib.get_close_matches(name, _operators)
    message = f"TOSA has no operator '{name}' that takes and gives tensors"
    help = f"do you mean {' or '.join(near)}?" if near else "dir(tosaic.tosa) lists those that there are"
    raise Error(code="tosa.operator", message=message, help=help) if kind is Error else AttributeError(f"{message}: {help}")


def __getattr__(name: str) -> Operator:
    if name.startswith("__"):
        raise AttributeError(name)
    return _named(name, AttributeError)


def __dir__() -> list[str]:
    _named("identity", Error)
    return [*_operators, "op"]


# ---- what PyTorch sees

def _register() -> None:
    """As operators of PyTorch, `torch.ops.tosaic.clamp`: so they are traced among its own."""
    global _library
    if _library is not None:
        return
    import torch

    library = torch.library.Library("tosaic", "FRAGMENT")
    for row in _core.tosa_operators():
        for schema in row.schemas:
            bare = schema.partition("::")[2]
            name = bare.partition("(")[0]
            library.define(bare)
            overload = f"tosaic.{name if '.' in name else name + '.default'}"
            library.impl(name, _computed(overload), "CPU")
            torch.library.register_fake(f"tosaic::{name}", _typed(overload), lib=library)
    _library = library


def _call(overload: str, args: tuple, kwargs: dict) -> tuple[list[Any], dict[str, Any]]:
    """The tensors among the arguments, in order, and what else was given, by name."""
    import torch

    _, name, which = overload.split(".")
    schema = getattr(getattr(torch.ops.tosaic, name), which)._schema
    given = {**dict(zip((a.name for a in schema.arguments), args)), **kwargs}
    tensors: list[Any] = []
    arguments: dict[str, Any] = {}
    for argument in schema.arguments:
        value = given.get(argument.name, argument.default_value)
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)) and any(isinstance(x, torch.Tensor) for x in value):
            tensors += value
        else:
            arguments[argument.name] = torch_name(value) if isinstance(value, torch.dtype) else value
    return tensors, arguments


def _typed(overload: str) -> Any:
    def fake(*args: Any, **kwargs: Any) -> Any:
        tensors, arguments = _call(overload, args, kwargs)
        # A size that is known when the program runs becomes a number here, which is noticed (`_bridge`).
        described = [(0, torch_name(x.dtype), tuple(int(s) for s in x.shape), None) for x in tensors]
        return _given([tensors[0].new_empty(sizes, dtype=_torch_dtype(dtype))
                       for dtype, sizes, _ in _core.evaluate_call(overload, described, arguments)])

    return fake


def _computed(overload: str) -> Any:
    def computed(*args: Any, **kwargs: Any) -> Any:
        tensors, arguments = _call(overload, args, kwargs)
        described = [describe(x) for x in tensors]
        results = _core.evaluate_call(overload, [d for d, _ in described], arguments)
        if any(elements is None for *_, elements in results):
            raise Error(code="tosa.evaluate", message=f"{overload} is not computed by itself",
                        help="compile a program that calls it")
        return _given([_to_torch(elements, dtype).clone() for dtype, _, elements in results])

    return computed


def _torch_dtype(name: str) -> Any:
    import torch

    if name in _THEIR_NAMES:
        return getattr(torch, _THEIR_NAMES[name])
    raise Error(code="tosa.dtype", message=f"the result has the dtype {name}, which PyTorch has no tensors of",
                help="use operands of another dtype")


def _given(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)
