# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as Python says it: exceptions and warnings that carry the core's diagnostic."""

from __future__ import annotations

import warnings


class Error(Exception):
    """Something was refused. The text is the diagnostic as a compiler prints it, with the user's line where one is known.

    Attributes:
        diagnostic: a `Diagnostic`: code, message, file, line, notes, help; None where Python itself refused.
        code: stable and searchable, "target.unsupported".
    """

    def __init__(self, diagnostic=None, *, code: str = "", message: str = "", help: str = "", notes=()):
        self.diagnostic = diagnostic
        self.code = diagnostic.code if diagnostic is not None else code
        self.help = diagnostic.help if diagnostic is not None else help
        if diagnostic is not None:
            text = str(diagnostic)
        else:
            text = f"error[{code}]: {message}" + "".join(f"\n  note: {n}" for n in notes)
            text += f"\n  help: {help}" if help else ""
        super().__init__(text)

    def __reduce__(self):  # the core's object stays in its process
        return _restored, (self.args[0], self.code, self.help)


def _restored(text: str, code: str, help: str) -> Error:
    error = Error(code=code, help=help)
    error.args = (text,)
    return error


class CompileWarning(UserWarning):
    """A warning of the compiler. `warnings.simplefilter("error", tosaic.CompileWarning)` makes errors of them."""

    def __init__(self, text: str, diagnostic=None):
        super().__init__(text)
        self.diagnostic = diagnostic


def tell(diagnostics, stacklevel: int = 3) -> None:
    """Says the warnings among them; notes stay with the artifact."""
    for d in diagnostics:
        if d.severity == "warning":
            warnings.warn(CompileWarning(str(d), d), stacklevel=stacklevel)
