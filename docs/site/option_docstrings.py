# SPDX-License-Identifier: Apache-2.0
"""An extension of griffe. The package puts the table of options into docstrings when it is imported; here stands a link."""
import griffe

PLACEHOLDER = "OPTIONS"
LINK = ("Options are keywords, those of [CompileOptions][tosaic._compile_options.CompileOptions]: the command line's with "
        "underscores, explained with [its commands](commands.md#compile).")


class OptionDocstrings(griffe.Extension):
    def on_instance(self, *, obj, **kwargs):
        if obj.docstring and PLACEHOLDER in obj.docstring.value:
            lines = obj.docstring.value.split("\n")
            obj.docstring.value = "\n".join(LINK if line.strip() == PLACEHOLDER else line for line in lines)
