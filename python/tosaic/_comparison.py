# SPDX-License-Identifier: Apache-2.0
"""Where a program loses accuracy in integers or 16-bit floats: what `compare` gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _core
from ._text import preformatted

if TYPE_CHECKING:
    import pandas


class Comparison:
    """A program, quantised or in 16-bit floats, held against its floats in f32. It prints as a table of the worst layers;
    `text(0)` has all.

    Attributes:
        outputs: one dict per output: name, type, accumulated, on_device (None: it was not asked).
        layers: one dict per call of the program, the worst own error first: value, node, ops, module, place,
            type, shape, delegated, own, accumulated, saturated, range_used, reasons.
        device: on which the program was run, too; None: on none.
        samples: how many it was compared on.
        top1: where labels were given, a dict: labels (how many), percent and percent_in_floats of them that are right.

    `accumulated` is the error of all that was computed so far: snr_db (None: infinite, `exact` says that the two are
    equal), cosine, worst_channel. `own` is that of the call alone, on the float program's operands; None: it loses nothing
    itself. `reasons` say why, each with kind, sentence and the remedy, an option of the command line.
    """

    outputs: list[dict[str, Any]]
    layers: list[dict[str, Any]]
    device: str | None
    samples: int
    top1: dict[str, Any] | None

    def __init__(self, core: _core.Comparison) -> None:
        self._core = core
        content = json.loads(core.json())
        self.outputs, self.layers, self.samples = content["outputs"], content["layers"], content["samples"]
        self.device, self.top1 = content["device"], content["top1"]

    def text(self, limit: int = 20) -> str:
        """The table of so many layers; 0: of all."""
        return self._core.text(limit)

    def json(self) -> str:
        """All of it, as `tosaic compare --json` prints it."""
        return self._core.json()

    def to_pandas(self) -> pandas.DataFrame:
        """A row per layer: node, ops, type, own_db, accumulated_db, saturated, range_used, module, place."""
        import pandas

        return pandas.DataFrame([{"node": r["node"], "ops": " + ".join(r["ops"]), "type": r["type"],
                                  "own_db": r["own"] and r["own"]["snr_db"], "accumulated_db": r["accumulated"]["snr_db"],
                                  "saturated": r["saturated"], "range_used": r["range_used"], "module": r["module"],
                                  "place": r["place"]} for r in self.layers])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return preformatted(self.text())
