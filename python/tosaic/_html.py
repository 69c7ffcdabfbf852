# SPDX-License-Identifier: Apache-2.0
"""A summary as a notebook shows it. Colours are half transparent and text has the page's colour: light and dark alike."""

from __future__ import annotations

import linecache
import os
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from ._text import size_text

if TYPE_CHECKING:
    from ._artifact import Summary

_GOOD, _BAD, _GREY = "rgba(40,140,80,.55)", "rgba(210,120,30,.6)", "rgba(128,128,128,.18)"
_NODES = 8  # how many are shown
_LEFT = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_RIGHT = "text-align:right;vertical-align:top;padding:2px 12px 2px 0"


def _bar(share: float, colour: str, width: int = 240) -> str:
    filled = round(max(0.0, min(1.0, share)) * width)
    return (f"<div style='width:{width}px;height:11px;background:{_GREY};display:inline-block;vertical-align:middle'>"
            f"<div style='width:{filled}px;height:11px;background:{colour}'></div></div>")


def _table(head: list[tuple[str, str]], rows: list[list[str]]) -> str:
    """`head`: (title, style) of each column; cells are HTML."""
    titles = "".join(f"<th style='{style}'>{escape(title)}</th>" for title, style in head)
    body = "".join("<tr>" + "".join(f"<td style='{style}'>{cell}</td>" for cell, (_, style) in zip(row, head)) + "</tr>"
                   for row in rows)
    return f"<table style='border-collapse:collapse;margin:2px 0 8px 0'><tr>{titles}</tr>{body}</table>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _short(place: str) -> str:
    """"model.py:6" of a file in or below the working folder; others as they are."""
    here = os.path.join(os.getcwd(), "")
    return escape(place.removeprefix(here))


def _line(place: str) -> str:
    """A place and the text of its line, as far as it can be read (a notebook's cells can)."""
    file, _, number = place.rpartition(":")
    text = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    where = f"cell:{number}" if "ipykernel_" in place else _short(place)
    return where + (f" {_code(text)}" if text else "")


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _delegated(summary: Summary) -> str:
    taken, all_ = sum(n.taken for n in summary.nodes), len(summary.nodes)
    delegates = f"{summary.delegates} delegate{'' if summary.delegates == 1 else 's'}"
    colour = _GOOD if taken == all_ else _BAD
    return f"{_bar(taken / all_ if all_ else 0, colour)} &nbsp;{taken} of {all_} nodes, in {delegates}"


def _facts(summary: Summary) -> str:
    rows = [["delegated", _delegated(summary)]]
    for number, e in enumerate(summary.estimates):
        which = f" {number}" if len(summary.estimates) > 1 else ""
        rows.append([f"cycles{which}", f"{e.cycles:,.0f} for one inference, {e.inferences_per_second:,.0f} inferences a second: "
                                       f"Vela's estimate ({escape(e.system_config)}, {escape(e.memory_mode)})"])
        parts = [("SRAM", e.sram_bytes), ("DRAM", e.dram_bytes), ("flash", e.flash_bytes)]
        rows.append([f"memory{which}", ", ".join(f"{name} {size_text(size)}" for name, size in parts if size)])
    if summary.program_bytes:
        rows.append(["program", f"{size_text(summary.program_bytes)}, of it {size_text(summary.payload_bytes)} for "
                                f"delegates: {summary.tosa_operators} TOSA operators"])
    seconds = sum(s for _, s in summary.stage_seconds)
    outside = f", of it {_time(summary.peer_seconds)} in another compiler" if summary.peer_seconds else ""
    rows.append(["made in", f"{_time(seconds)}{outside}"])
    return _table([("", _LEFT + ";opacity:.7"), ("", _LEFT)], rows)


def _layers(summary: Summary) -> str:
    """Where the cycles go, by node, the largest first."""
    nodes: dict[tuple[str, str, str], tuple[float, float]] = {}  # cycles, and cycles of multipliers that were used
    for layer in (layer for e in summary.estimates for layer in e.layers):
        key = (layer.node or layer.name, layer.module, layer.place)
        cycles, used = nodes.get(key, (0.0, 0.0))
        nodes[key] = (cycles + layer.cycles, used + layer.cycles * layer.utilisation_percent / 100)
    whole = sum(cycles for cycles, _ in nodes.values())
    if not whole:
        return ""

    def row(name: list[str], cycles: float, used: float) -> list[str]:
        share = cycles / whole
        return [*name, f"{cycles:,.0f}", f"{_bar(share, _GOOD, 120)} {share:.0%}", f"{used / cycles if cycles else 0:.0%}"]

    ordered = sorted(nodes.items(), key=lambda item: -item[1][0])
    rows = [row([_code(node), escape(module), _short(place)], *counts)
            for (node, module, place), counts in ordered[:_NODES]]
    if others := ordered[_NODES:]:
        rows.append(row([f"{len(others)} others", "", ""], sum(c for _, (c, _) in others), sum(u for _, (_, u) in others)))
    return _table([("node", _LEFT), ("module", _LEFT), ("line", _LEFT), ("cycles", _RIGHT), ("", _LEFT),
                   ("multipliers used", _RIGHT)], rows)


def _outside(summary: Summary) -> str:
    """What no delegate takes, and why; the places of the first few."""
    groups: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], list[str]] = {}
    for n in summary.nodes:
        if not n.taken:
            key = (n.op, n.reason.reason if n.reason else "")
            groups[key] += 1
            if n.place and n.place not in places.setdefault(key, []):
                places[key].append(n.place)
    rows = []
    for (op, why), count in groups.most_common():
        where = places.get((op, why), [])
        rows.append([f"{count} &times; {_code(op)}", escape(why),
                     "<br>".join(_line(place) for place in where[:3]) + ("<br>..." if len(where) > 3 else "")])
    return _table([("outside the delegates", _LEFT), ("why", _LEFT), ("line", _LEFT)], rows) if rows else ""


def _messages(summary: Summary) -> str:
    colours = {"warning": _BAD, "error": _BAD}
    return "".join(
        f"<pre style='margin:4px 0;padding:4px 8px;border-left:4px solid {colours.get(m.severity, _GREY)};"
        f"background:{_GREY};white-space:pre-wrap'>{escape(str(m))}</pre>" for m in summary.messages)


def page_of(summary: Summary) -> str:
    """What became of the program, where its cycles go, what stays outside and why, and what the compiler said."""
    return (f"<div><b title='{escape(summary.name)}'>{escape(os.path.basename(summary.name))}</b> for <b>{escape(summary.target)}</b> "
            f"<span style='opacity:.7'>{escape(summary.tosa_spec)}</span>"
            f"{_facts(summary)}{_layers(summary)}{_outside(summary)}{_messages(summary)}</div>")
