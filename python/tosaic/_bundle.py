# SPDX-License-Identifier: Apache-2.0
"""Bundled programs (`.bpte`): a `.pte` with cases to try it with, for ExecuTorch's runners and ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from ._core import CaseOutcome
from ._errors import Error, tell
from ._program import Program
from ._session import Session, session_options
from ._tensors import describe


def _dense(x: Any) -> Any:
    """As the core copies it: row-major."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return x.detach().contiguous()
    import numpy

    return numpy.ascontiguousarray(x if hasattr(x, "__array__") else numpy.from_dlpack(x)).reshape(x.shape)


def _values(leaves: list[Any], alive: list[Any]) -> list[Any]:
    """Descriptions of tensors, and numbers as they are."""
    values = []
    for leaf in leaves:
        if leaf is None or isinstance(leaf, (bool, int, float, str, list)):
            values.append(leaf)
            continue
        describe(leaf)  # says what is no tensor
        dense = _dense(leaf)
        row, owner = describe(dense)
        alive += [dense, owner]
        values.append(row)
    return values


def bundle(pte: bytes, program: Program, session: Session, cases: Iterable[Any], expected: Iterable[Any] | None) -> bytes:
    """The `.bpte`. `cases` are calls of the module; `expected` its results, by default what `session` gives."""
    call, result = program._trees()
    results = None if expected is None else iter(expected)
    rows: list[tuple[str, list[Any], list[Any]]] = []
    alive: list[Any] = []
    for case in cases:
        args, kwargs = ((), dict(case)) if isinstance(case, Mapping) else (case, {})
        args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        leaves = call.flatten(args, kwargs) if call else list(args)
        given = session.run(*args, **kwargs)  # also looks at the inputs
        if results is not None:
            try:
                given = next(results)
            except StopIteration:
                raise Error(code="bundle.expected", message=f"there are more cases than the {len(rows)} results expected",
                            help="give one result for each case") from None
        outputs = result.flatten(given, "the result") if result else list(given) if isinstance(given, (tuple, list)) else [given]
        rows.append(("forward", _values(leaves, alive), _values(outputs, alive)))
    if results is not None and next(results, rows) is not rows:
        raise Error(code="bundle.expected", message=f"more results are expected than there are cases ({len(rows)})",
                    help="give one result for each case")
    return _core.bundle(pte, rows)


def check(file: str | os.PathLike[str] | bytes, *, rtol: float = 1e-5, atol: float = 1e-8, executor: str = "cpu",
          device: str = "auto", vulkan_device: str = "", threads: int = 0,
          data: dict[str, bytes] | None = None) -> list[CaseOutcome]:
    """Runs the cases of a bundled program (`.bpte`) and compares, with ExecuTorch's tolerances unless others are given.

    Args:
        file: a path, or the bytes.
        rtol, atol: a float passes within `atol + rtol * abs(expected)`; integers and booleans have to be equal.
        executor, device, vulkan_device, threads, data: as `load` takes them.

    Returns:
        One outcome per case; true where it passed.

    Raises:
        Error: file.*, bpte.*, run.device, delegate.*, kernel.*, memory.limit.
    """
    options = session_options(executor, "forward", device, vulkan_device, threads, data)
    name = "program"
    if isinstance(file, (str, os.PathLike)):
        name = os.fspath(file)
        try:
            with open(name, "rb") as opened:
                file = opened.read()
        except OSError as why:
            raise Error(code="file.missing", message=f"cannot open {name}: {why.strerror}", help="check the path") from why
    outcomes, said = _core.check_cases(bytes(file), name, options, rtol, atol)
    tell(said)
    return outcomes
