#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of trained models after quantisation: one table on the standard output, and the figures as JSON.

    build/python-env/bin/python test/accuracy/table.py [MODEL ...] [--seeds 0 1] [--columns int8 "PT2E int8"]
    ... --options observer=minmax override='aten.add: int16x8'      # passed to every tosaic.compile

Each cell: the task's metric, and the dB of the outputs against PyTorch's floats."""
import argparse
import ast
import json
import pathlib
import sys
import time

from columns import COLUMNS, TRAINED, Measured
from model import load, names
from packages import BUILD


def option(text):
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def asked():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(names())}; default all")
    parser.add_argument("--seeds", nargs="+", type=int, help="draws of the samples; default those of the model, mostly 0")
    parser.add_argument("--columns", nargs="+", choices=[*COLUMNS, *TRAINED], default=COLUMNS,
                        help="QAT, which trains for minutes, only where it is asked for")
    parser.add_argument("--options", nargs="+", type=option, default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=pathlib.Path, default=BUILD / "accuracy.json")
    return parser.parse_args()


def cell(figure):
    if "refused" in figure:
        return "refused"
    found = f"{figure['metric']:.3g}" if abs(figure["metric"]) < 10 else f"{figure['metric']:.1f}"
    return f"{found}; {figure['dB']:.1f} dB" if "dB" in figure else found


def main():
    o = asked()
    print(f"| model | draw | metric | {' | '.join(o.columns)} |\n|---|---|---|{'---|' * len(o.columns)}", flush=True)
    rows = []
    for name in o.models or names():
        for seed in o.seeds or range(load(name).draws):
            started = time.monotonic()
            measured = Measured(load(name, seed), o.options)
            figures = {column: measured.figure(column) for column in o.columns}
            rows.append({"model": name, "seed": seed, "metric": measured.model.metric,
                         "lower_is_better": measured.model.lower_is_better, "options": dict(o.options), "figures": figures})
            cells = [name, str(seed), measured.model.metric, *(cell(figures[column]) for column in o.columns)]
            print(f"| {' | '.join(cells)} |", flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
            for column, figure in figures.items():
                if "refused" in figure:
                    print(f"{name}, {column}: {figure['refused']}", file=sys.stderr)
    o.json.parent.mkdir(parents=True, exist_ok=True)
    o.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
