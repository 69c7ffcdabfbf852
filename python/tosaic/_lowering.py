# SPDX-License-Identifier: Apache-2.0
"""Lowerings of custom operators: a PyTorch function says one in operators that tosaic knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import _core
from ._errors import Error

_Function = TypeVar("_Function", bound=Callable[..., Any])
_given: dict[Any, Callable] = {}  # by OpOverload


def name_of(op: Any) -> str:
    """An OpOverload's name as the core writes it: "aten.relu.default"."""
    return f"{op.namespace}.{op._schema.name.split('::')[1]}.{op._overloadname}"


def described(function: Callable) -> str:
    """"silu (model.py:12)"."""
    import inspect  # takes its time

    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def lowering(operator: Any, *, replace: bool = False) -> Callable[[_Function], _Function]:
    """Says what an operator that tosaic does not know means: a function with the operator's arguments, written in PyTorch.

        @tosaic.lowering("mylib::swish")
        def swish(x, beta=1.0):
            return x * torch.sigmoid(beta * x)

    Wherever a program calls the operator, `compile`, `explain`, `supports`, `plan` and the partitioners put the calls that
    the function makes in its place; integer targets quantise each of them. The function is called while a program is
    compiled, with tensors that have types and sizes but no numbers.

    Args:
        operator: "mylib::swish", "mylib::swish.overload", or the operator itself (`torch.ops.mylib.swish`, what
            `torch.library.custom_op` returns).
        replace: the function takes the place of one that was given before.

    Raises:
        Error: lowering.operator (there is none of that name), lowering.known (tosaic lowers it itself), lowering.twice,
            lowering.signature. When a program is compiled: lowering.failed, lowering.result.
    """

    def given(function: _Function) -> _Function:
        op = _overload(operator, function)
        if _core.knows(name_of(op)):
            raise Error(code="lowering.known", message=f"{described(function)} is a lowering of {op.name()}, which tosaic "
                                                       "lowers itself",
                        help="give lowerings of operators that `tosaic.operators()` does not list")
        if op in _given and not replace:
            raise Error(code="lowering.twice", message=f"{described(function)} is a second lowering of {op.name()}",
                        notes=[f"the first is {described(_given[op])}"],
                        help="leave one of them out, or say replace=True (in a notebook, whose cells run again)")
        _same_arguments(op, function)
        _given[op] = function
        return function

    return given


def lowerings() -> dict[Any, Callable]:
    """The functions that were given, by overload."""
    return _given


def _overload(operator: Any, function: Callable) -> Any:
    import torch

    wanted = getattr(operator, "_opoverload", operator)  # what torch.library.custom_op returns
    if isinstance(wanted, torch._ops.OpOverload):
        return wanted
    packet = wanted
    if isinstance(wanted, str):
        namespace, _, rest = wanted.partition("::")
        name, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name, None) if name else None
        if packet is not None and overload:
            if overload in packet.overloads():
                return getattr(packet, overload)
            packet = None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        raise Error(code="lowering.operator", message=f"{described(function)} is a lowering of {operator!r}, but there is no "
                                                      "such operator",
                    help="define it first (torch.library.custom_op, or import or load the library that has it); it is "
                         "called \"namespace::name\" or \"namespace::name.overload\"")
    overloads = packet.overloads()
    if len(overloads) == 1 or "default" in overloads:
        return getattr(packet, overloads[0] if len(overloads) == 1 else "default")
    raise Error(code="lowering.operator", message=f"{described(function)} is a lowering of {operator!r}, which has "
                                                  f"{len(overloads)} overloads",
                help=f"give one for each: {', '.join(f'{operator}.{o}' for o in overloads)}")


def _same_arguments(op: Any, function: Callable) -> None:
    import inspect

    arguments = op._schema.arguments
    try:
        inspect.signature(function).bind(*[a.name for a in arguments if not a.kwarg_only],
                                         **{a.name: a.name for a in arguments if a.kwarg_only})
    except ValueError:
        pass  # a function without signature
    except TypeError as why:
        raise Error(code="lowering.signature", message=f"{described(function)} does not take the arguments of "
                                                       f"{op.name()}: {why}",
                    help=f"the operator is {op._schema}") from None


def call_of(op: Any, args: tuple, kwargs: dict) -> tuple[list, dict]:
    """The call with the schema's defaults, which a program leaves out."""
    positional, named = list(args), dict(kwargs)
    for place, argument in enumerate(op._schema.arguments):
        if argument.kwarg_only:
            named.setdefault(argument.name, argument.default_value)
        elif place >= len(positional):
            positional.append(named.pop(argument.name, argument.default_value))
    return _own(positional), _own(named)


def _own(x: Any) -> Any:
    """A graph's lists and dicts refuse to be changed."""
    if isinstance(x, (list, tuple)):
        items = [_own(item) for item in x]
        return tuple(items) if isinstance(x, tuple) else items
    return {key: _own(item) for key, item in x.items()} if isinstance(x, dict) else x
