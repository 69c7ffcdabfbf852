# SPDX-License-Identifier: Apache-2.0
"""The adapter: Arm's for `.pte` files, which asks a table how a delegate's payload is shown; the table gets a row for TOSA."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from model_explorer import AdapterMetadata, ModelExplorerGraphs
from model_explorer import graph_builder as gb
from pte_adapter_model_explorer.builder.delegate import DELEGATE_HANDLERS
from pte_adapter_model_explorer.main import PTEAdapter
from tosa_adapter_model_explorer.main import TosaFlatbufferAdapter

_DELEGATE = "TOSABackend"


def tosa_graph(payload: bytes, settings: dict[str, Any]) -> gb.Graph:
    """The graph in a payload, a TOSA flatbuffer. Raises ValueError where it has none, or an older format."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "delegate.tosa")
        file.write_bytes(payload)
        graphs = TosaFlatbufferAdapter().convert(str(file), settings)["graphs"]
    if not graphs:
        raise ValueError("the TOSA delegate holds no graph")
    return graphs[0]


class PteWithTosaAdapter(PTEAdapter):
    """`.pte` files, with the graphs inside of TOSA delegates."""

    metadata = AdapterMetadata(
        id="tosaic_pte",
        name="PTE with TOSA (tosaic)",
        description="ExecuTorch programs, with the graphs inside of TOSA delegates",
        fileExts=["pte"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """The program's graphs, and a collection "delegates" with those inside."""
        DELEGATE_HANDLERS.setdefault(_DELEGATE, tosa_graph)  # what an Arm adapter of a later version does stays
        return super().convert(model_path, settings)
