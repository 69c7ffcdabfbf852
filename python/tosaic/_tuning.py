# SPDX-License-Identifier: Apache-2.0
"""Mixed precision within a budget: what `tune` gives."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _core


class Tuning:
    """Which calls of an int8 program get 16 bits. It prints as a table of what was measured.

        tuning = tosaic.tune(model, x, "ethos-u85-256", budget="cycles<=1.15x", calibration=batches)
        artifact = tosaic.compile(model, x, "ethos-u85-256", calibration=batches, override=tuning.overrides)

    Attributes:
        overrides: the chosen calls, as the option `override` takes them.
        met: False: nothing meets the budget, and what was chosen comes nearest.
        points: what was measured, one dict per plan: tensors (those of 16 bits, as indices of `order`), calls (how many nodes
            that takes), snr_db (of the worst output; None: equal to the floats), top1 (percent of the labels that are
            right), cost, ratio (to int8's cost).
        chosen: the point that `overrides` and `plan` are about.
        order: one dict per tensor that could have 16 bits, the best first: nodes (calls that then compute with 16 bits), op and
            where of the call that makes it, noise and cost as shares.
        top1_of_floats: percent of the labels that the float program has right; None: there are no labels.
        unit: of the cost: "cycles", Vela's estimate; "bytes", of activations that calls read and write.
        plan: a plan file's text, for the option `plan`. It can be edited.
    """

    def __init__(self, core: _core.Tuning) -> None:
        self._core = core
        content: dict[str, Any] = json.loads(core.json())
        self.points: list[dict[str, Any]] = content["points"]
        self.order: list[dict[str, Any]] = content["order"]
        self.chosen: dict[str, Any] = self.points[content["chosen"]]
        self.overrides = [f"{node}: int16x8" for i in self.chosen["tensors"] for node in self.order[i]["nodes"]]
        self.met: bool = content["met"]
        self.top1_of_floats: float | None = content["top1_of_floats"]
        self.unit: str = content["unit"]
        self.plan: str = content["plan"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.plan)

    def text(self) -> str:
        """The table."""
        return self._core.text()

    def json(self) -> str:
        """All of it, as `tosaic tune --json` prints it."""
        return self._core.json()

    def __repr__(self) -> str:
        return self.text()
