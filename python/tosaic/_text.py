# SPDX-License-Identifier: Apache-2.0
"""Quantities as people read them."""

from __future__ import annotations


def size_text(count: float) -> str:
    """1536 as "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""
