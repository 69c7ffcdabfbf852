# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments as the core's options, which describe themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _core


def values_of(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def options_of(keywords: Mapping[str, object]) -> dict[str, list[str]]:
    """memory_mode="Sram_Only" -> {"memory-mode": ["Sram_Only"]}; None means the default."""
    return {name.replace("_", "-"): values_of(value) for name, value in keywords.items() if value is not None}


def options_page() -> str:
    """What every option means, for docstrings."""
    def line(option) -> str:
        values = f" One of {', '.join(option.allowed)}." if option.allowed and option.kind != "flag" else ""
        if option.kind == "flag" and option.default == "true":  # the sentence says what the command line's --no-... does
            return f"    {option.name.replace('-', '_')}: on by default. False: {option.sentence}."
        default = f" Default: {option.default}." if option.default and option.kind != "flag" else ""
        return f"    {option.name.replace('-', '_')}: {option.sentence}.{values}{default}"

    lines = ["Options of every target:"] + [line(o) for o in _core.compile_options()]
    families: dict[str, list[str]] = {}
    for target in _core.targets():
        if target.options and target.family not in families:
            families[target.family] = [line(o) for o in target.options]
    for family, rows in families.items():
        lines += ["", f"Options of {family} targets:"] + rows
    return "\n".join(lines)
