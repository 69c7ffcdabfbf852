# SPDX-License-Identifier: Apache-2.0
"""What scripts call in addition to the classes: the factories of ExecuTorch's own tools, and helpers that its Arm backend had in
earlier versions, when a compile spec was a list of (key, bytes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import Error
from .compile_specs import ArmCompileSpec, EthosUCompileSpec, TosaCompileSpec, VgfCompileSpec, VulkanCompileSpec

if TYPE_CHECKING:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

_KINDS: tuple[type[ArmCompileSpec], ...] = (TosaCompileSpec, EthosUCompileSpec, VgfCompileSpec, VulkanCompileSpec)


def parse_compile_spec(compile_specs: list[CompileSpec]) -> ArmCompileSpec:
    """The compile spec that `to_list` made this list of. Raises ValueError for a list of another kind."""
    rows = [bytes(s.value).decode() for s in compile_specs if s.key == "output_format"]
    for kind in _KINDS:
        if rows and rows[0] == kind.get_output_format():
            return kind.from_list(compile_specs)
    raise ValueError(f"Unknown output format {rows[0]}" if rows else "Compile spec without output format.")


def create_partitioner(compile_spec: ArmCompileSpec, additional_checks: Any = None) -> Any:
    """The partitioner for a compile spec."""
    from .partitioner import ArmPartitioner

    return ArmPartitioner(compile_spec, additional_checks)


def create_quantizer(compile_spec: ArmCompileSpec) -> Any:
    """The quantizer for a compile spec."""
    from .quantizer import EthosUQuantizer, TOSAQuantizer, VgfQuantizer

    kinds = {EthosUCompileSpec: EthosUQuantizer, VgfCompileSpec: VgfQuantizer, TosaCompileSpec: TOSAQuantizer}
    return kinds.get(type(compile_spec), TOSAQuantizer)(compile_spec)


def _spec_of(compile_spec: Any) -> ArmCompileSpec:
    if isinstance(compile_spec, ArmCompileSpec):
        return compile_spec
    if isinstance(compile_spec, (list, tuple)):
        return parse_compile_spec(list(compile_spec))
    raise Error(code="spec.kind", message=f"a {type(compile_spec).__qualname__} is no compile spec",
                help="give what ArmCompileSpecBuilder().build() gives")


def is_tosa(compile_spec: Any) -> bool:
    """Is it for TOSA graphs?"""
    return isinstance(_spec_of(compile_spec), TosaCompileSpec)


def is_ethosu(compile_spec: Any) -> bool:
    """Is it for an Ethos-U NPU?"""
    return isinstance(_spec_of(compile_spec), EthosUCompileSpec)


def is_vgf(compile_spec: Any) -> bool:
    """Is it for VGF?"""
    return isinstance(_spec_of(compile_spec), VgfCompileSpec)


def get_tosa_spec(compile_spec: Any) -> str:
    """Its TOSA specification, as text."""
    return _spec_of(compile_spec).tosa_spec


def get_intermediate_path(compile_spec: Any) -> str | None:
    """The folder of `dump_intermediate_artifacts_to`."""
    return _spec_of(compile_spec).get_intermediate_path()
