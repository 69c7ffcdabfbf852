# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as Python says it: exceptions and warnings that carry the core's diagnostic."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Diagnostic


# What `printable` of the C++ library shows: what a terminal would obey, and bytes that were no UTF-8 (halves of pairs here).
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _shown(match: re.Match[str]) -> str:
    number = ord(match.group())
    byte = number - 0xdc00 if 0xdc80 <= number <= 0xdcff else number
    return f"\\x{byte:02x}" if byte < 0x100 else f"\\u{byte:04x}"


class Error(Exception):
    """Something was refused. The text is the diagnostic as a compiler prints it, with the user's line where one is known.

    Attributes:
        diagnostic: a `Diagnostic`: code, message, file, line, notes, help; None where Python itself refused.
        code: stable and searchable, "target.unsupported".
        help: the hint, what to do; may be empty.
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
            text = _NOT_TEXT.sub(_shown, text)
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
