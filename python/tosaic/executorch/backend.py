# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's backends: a partition becomes the payload of one delegate, in memory.

ExecuTorch finds a backend by its class's name among all that were ever defined, and the first one wins. Where its own Arm
backends are imported as well, each hands over what the other's compile specs ask for.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from typing import Any

from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from torch.export.exported_program import ExportedProgram

from .. import _core
from .._artifact import _write
from .._compile import _find_tools
from . import _edge
from .compile_specs import ArmCompileSpec, EthosUCompileSpec, TosaCompileSpec, VgfCompileSpec, VulkanCompileSpec


def _are_ours(specs: list) -> bool:
    return any(spec.key == "tosaic" for spec in specs)


def _preprocess(program: ExportedProgram, spec: ArmCompileSpec) -> PreprocessResult:
    _find_tools()
    outside = _outside(spec)
    options = {**spec.options(), "single-delegate": ["true"]}
    if outside:
        options["external"] = [f"{block}={tag}.ptd" for block, tag in outside.items()]
    tags = {n.meta.get("delegation_tag") for n in program.graph.nodes if n.op == "call_function"} - {None}
    name = tags.pop() if len(tags) == 1 else "program"
    artifact, _ = _core.compile(_edge.held(program, name), spec.target, options, None, {})
    if spec.path_for_intermediates:
        _keep(artifact, spec, name)
    payload = artifact.piece("payload")
    handles = {n.name: (n.meta["debug_handle"],) for n in program.graph.nodes if n.meta.get("debug_handle") is not None}
    return PreprocessResult(processed_bytes=payload, debug_handle_map=handles or None,
                            data_store_output=_named_data(artifact, outside))


def _outside(spec: ArmCompileSpec) -> dict[str, str]:
    """Tag by the core's name of a block."""
    placements = getattr(spec, "external_block_placements", None)
    blocks = placements.to_block_placements() if placements else {}
    return {{"cmd_data": "commands", "weight_data": "weights"}[block]: tag for block, tag in blocks.items()}


def _named_data(artifact: _core.Artifact, outside: dict[str, str]):
    """What the payload refers to, for ExecuTorch to write into the .ptd files of the tags."""
    if not outside:
        return None
    from executorch.extension.flat_tensor.serialize.serialize import FlatTensorConfig, FlatTensorSerializer

    store = NamedDataStore()
    for tag in sorted(set(outside.values())):
        file = FlatTensorSerializer(FlatTensorConfig()).deserialize(Cord(artifact.piece(f"ptd/{tag}.ptd")))
        for key, entry in file.named_data.items():
            store.add_named_data(key, bytes(file.buffers[entry.buffer_index]), alignment=16, external_tag=tag)
    return store.get_named_data_store_output()


def _keep(artifact: _core.Artifact, spec: ArmCompileSpec, name: str) -> None:
    folder = spec.path_for_intermediates
    os.makedirs(folder, exist_ok=True)
    for piece in artifact.pieces():
        if piece in ("tosa", "vgf"):
            _write(os.path.join(folder, f"{name}.{piece}"), artifact.piece(piece))
        elif piece.startswith("vela/"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
            _write(os.path.join(folder, name, os.path.basename(piece)), artifact.piece(piece))
    if spec.tosa_debug_mode is not None:
        _write(os.path.join(folder, f"{name}.debug.json"), artifact.manifest().encode())


class _Backend:
    """What all of ours do, by the compile spec that each is for. ExecuTorch looks among the direct subclasses of
    BackendDetails, so this is none."""

    _spec_class: type[ArmCompileSpec]

    @classmethod
    def preprocess(cls, edge_program: ExportedProgram, compile_specs: list) -> PreprocessResult:
        """The payload of a partition. Raises tosaic.Error, naming the user's line, for what the target does not take."""
        if not _are_ours(compile_specs):
            for other in _namesakes(cls):
                return other.preprocess(copy.deepcopy(edge_program), compile_specs)
        return _preprocess(edge_program, cls._spec_class._from_list(compile_specs))

    @classmethod
    def copy_exported_program_for_preprocess(cls, edge_program: ExportedProgram, compile_specs: list) -> Any:
        """The program itself: it is only read."""
        return edge_program


class TOSABackend(_Backend, BackendDetails):
    """Payloads are TOSA 1.0 flatbuffers."""

    _spec_class = TosaCompileSpec


class VgfBackend(_Backend, BackendDetails):
    """Payloads are VGF files."""

    _spec_class = VgfCompileSpec


class TosaicVulkan(_Backend, BackendDetails):
    """Payloads are compute shaders and what they work on; ExecuTorch's VulkanBackend has another form."""

    _spec_class = VulkanCompileSpec


class EthosUBackend(_Backend, BackendDetails):
    """Payloads are Vela's command streams; runs Vela."""

    _spec_class = EthosUCompileSpec


def _namesakes(backend: type) -> list[type]:
    return [other for other in BackendDetails.__subclasses__() if other.__name__ == backend.__name__ and other is not backend]


def take_over_from_namesakes(backend: type) -> None:
    """Another backend of the same name that was defined before ours would be given our compile specs: it hands them over,
    and keeps its own."""
    for other in _namesakes(backend):
        if hasattr(other, "_hands_over_to"):
            continue
        other.preprocess = staticmethod(_handing_over(other.preprocess, backend))
        other._hands_over_to = backend


def _handing_over(theirs: Callable, backend: type) -> Callable:
    @functools.wraps(theirs)
    def preprocess(edge_program: ExportedProgram, compile_specs: list) -> PreprocessResult:
        return (backend.preprocess if _are_ours(compile_specs) else theirs)(edge_program, compile_specs)

    return preprocess
