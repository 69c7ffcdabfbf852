# SPDX-License-Identifier: Apache-2.0
"""Quantities and texts as people read them."""

from __future__ import annotations


def size_text(count: float) -> str:
    """1536 as "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def preformatted(text: str) -> str:
    """A table of text as a notebook shows it: HTML, with its columns in line."""
    from html import escape  # takes its time

    return f"<pre>{escape(text)}</pre>"
