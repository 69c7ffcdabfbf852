# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as Python says it: exceptions and warnings that carry the core's diagnostic."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Diagnostic


class Error(Exception):
    """Something was refused. The text is the diagnostic as a compiler prints it, with the user's line where one is known.

    Attributes:
        diagnostic: a `Diagnostic`: code, message, file, line, notes, help; None where Python itself refused.
        code: stable and searchable, "target.unsupported".
        help: the way out; may be empty.
    """

    diagnostic: Diagnostic | None
    code: str
    help: str

    def __init__(self, diagnostic: Diagnostic | None = None, *, code: str = "", message: str = "", help: str = "",
                 notes: Iterable[str] = (), place: str = "") -> None:
        self.diagnostic = diagnostic
        self.code = diagnostic.code if diagnostic is not None else code
        self.help = diagnostic.help if diagnostic is not None else help
        if diagnostic is not None:
            text = str(diagnostic)
        else:
            text = (f"{place}: " if place else "") + f"error[{code}]: {message}" + "".join(f"\n  note: {n}" for n in notes)
            text += f"\n  help: {help}" if help else ""
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:  # the core's object stays in its process
        return _restored, (self.args[0], self.code, self.help)


def _restored(text: str, code: str, help: str) -> Error:
    error = Error(code=code, help=help)
    error.args = (text,)
    return error


class CompileWarning(UserWarning):
    """A warning of the compiler. `warnings.simplefilter("error", tosaic.CompileWarning)` makes errors of them.

    Attributes:
        diagnostic: the `Diagnostic`; None: it comes from Python.
    """

    diagnostic: Diagnostic | None

    def __init__(self, text: str, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(text)
        self.diagnostic = diagnostic


def tell(diagnostics: Iterable[Diagnostic], stacklevel: int = 3) -> None:
    """Says the warnings among them; notes stay with the artifact."""
    for d in diagnostics:
        if d.severity == "warning":
            warnings.warn(CompileWarning(str(d), d), stacklevel=stacklevel)
