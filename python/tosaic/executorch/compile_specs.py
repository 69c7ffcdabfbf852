# SPDX-License-Identifier: Apache-2.0
"""Compile specs with ExecuTorch's names and arguments: what a delegate is compiled for, and how.

They travel as ExecuTorch's lists of (key, bytes) between partitioner and backend, with the keys that ExecuTorch's own
Arm backends write.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from .. import _core
from .._errors import Error

if TYPE_CHECKING:
    from executorch.backends.arm.vgf.check_env import VgfEnvironmentReport
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from typing_extensions import Self


def _targets() -> dict[str, _core.TargetInfo]:
    return {t.name: t for t in _core.targets()}


# ExecuTorch's words in specifications that TOSA has others for. `u55` is no word of TOSA's.
_WORDS = {"cf": "controlflow", "var": "variable", "u55": None}


def in_our_words(spec: str) -> str:
    """A TOSA specification as the core reads it."""
    version, *words = spec.split("+")
    if version.startswith("TOSA-0.80"):  # the target says what of TOSA 1.0 such files can hold
        return _targets()[tosa_target(spec)].tosa_spec
    known = [_WORDS.get(word, word) for word in words]
    return "+".join([version, *(w for w in known if w is not None)])


class ArmCompileSpec:
    """What all of them know. `target` and `options` are tosaic's; the rest has ExecuTorch's names."""

    class DebugMode(Enum):
        """What `dump_debug_info` writes next to the intermediate artifacts."""

        JSON = 1  # the manifest: where every node went, estimates, hashes
        TOSA = 2  # the same, and the graph of each delegate, whose tensors are named after the user's nodes

    target: str = ""
    tosa_spec: str
    compiler_flags: list[str]
    path_for_intermediates: str | None
    tosa_debug_mode: DebugMode | None
    _format: str = ""

    def __init__(self, target: str, tosa_spec: Any, compiler_flags: list[str] | None = None) -> None:
        self.target = target
        self.tosa_spec = str(tosa_spec)
        self.compiler_flags = list(compiler_flags or [])
        self.path_for_intermediates = None
        self.tosa_debug_mode = None
        self.options()  # refuses what no target takes, here and not while lowering

    # ---- ExecuTorch's methods

    def dump_intermediate_artifacts_to(self, output_path: str | None) -> Self:
        """Keeps what is made on the way (TOSA, VGF, Vela's files, the report of what was refused) in this folder."""
        self.path_for_intermediates = output_path
        return self

    def dump_debug_info(self, debug_mode: ArmCompileSpec.DebugMode | None) -> Self:
        """Adds debugging information to the intermediate artifacts; needs `dump_intermediate_artifacts_to`."""
        self.tosa_debug_mode = debug_mode
        return self

    def get_intermediate_path(self) -> str | None:
        """The folder of `dump_intermediate_artifacts_to`."""
        return self.path_for_intermediates

    _get_intermediate_path = get_intermediate_path

    @classmethod
    def get_output_format(cls) -> str:
        """"vela", "vgf" or "tosa"."""
        return cls._format

    _get_output_format = get_output_format

    def set_pass_pipeline_config(self, config: Any) -> None:
        """Taken and not used: tosaic has one lowering of each operator, exact for masked and unmasked softmax alike."""

    # ---- for the core

    def options(self) -> dict[str, list[str]]:
        """The core's options. Raises ValueError for flags that it has no meaning for."""
        given: dict[str, list[str]] = {}
        spec = in_our_words(self.tosa_spec)
        if spec != _targets()[self.target].tosa_spec:
            given["tosa-spec"] = [spec]
        return given

    def questions(self) -> list[tuple[str, dict[str, list[str]]]]:
        """Who has to take a node, as (target, options): the target, and the U55 where the specification says `+u55`."""
        asked = [(self.target, self.options())]
        if "u55" in self.tosa_spec.split("+") and not self.target.startswith("ethos-u"):
            asked.append(("ethos-u55-128", {}))
        return asked

    # ---- between partitioner and backend

    def to_list(self) -> list[CompileSpec]:
        """ExecuTorch's form of it, which travels with the program. Raises ValueError for dump_debug_info without a folder."""
        from executorch.exir.backend.compile_spec_schema import CompileSpec

        if self.tosa_debug_mode is not None and not self.path_for_intermediates:
            raise ValueError("dump_debug_info() must be used in conjunction with dump_intermediate_artifacts_to()")
        rows = {"tosaic": _core.version(), "tosa_spec": self.tosa_spec, "output_format": self._format,
                "target": self.target}
        if self.compiler_flags:
            rows["compile_flags"] = " ".join(self.compiler_flags)
        if self.path_for_intermediates:
            rows["debug_artifact_path"] = self.path_for_intermediates
        if self.tosa_debug_mode:
            rows["dump_debug_info"] = self.tosa_debug_mode.name
        rows.update(self._further())
        return [CompileSpec(key, value.encode()) for key, value in rows.items()]

    _to_list = to_list

    def _further(self) -> dict[str, str]:
        return {}

    @classmethod
    def from_list(cls, specs: list[CompileSpec]) -> Self:
        """The compile spec that `to_list` was asked for. Raises ValueError for one of another kind."""
        rows: dict[str, str] = {}
        for spec in specs:
            if spec.key in rows:
                raise ValueError(f"More than one {spec.key} entry in compile spec.")
            rows[spec.key] = bytes(spec.value).decode()
        if rows.get("output_format") != cls._format:
            raise ValueError(f"Incorrect output format '{rows.get('output_format')}' for {cls.__name__}, expected "
                             f"'{cls._format}'")
        spec = cls.__new__(cls)
        spec._restore(rows)
        ArmCompileSpec.__init__(spec, spec.target, rows["tosa_spec"], rows.get("compile_flags", "").split())
        spec.path_for_intermediates = rows.get("debug_artifact_path")
        mode = rows.get("dump_debug_info")
        spec.tosa_debug_mode = ArmCompileSpec.DebugMode[mode] if mode else None
        return spec

    _from_list = from_list

    def _restore(self, rows: dict[str, str]) -> None:
        self.target = rows["target"]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class TosaCompileSpec(ArmCompileSpec):
    """For the TOSA graphs themselves.

    Args:
        tosa_spec: "TOSA-1.0+INT", "TOSA-1.0+FP", "TOSA-0.80+BI", ... or ExecuTorch's TosaSpecification.
    """

    _format = "tosa"

    def __init__(self, tosa_spec: Any) -> None:
        super().__init__(tosa_target(str(tosa_spec)), tosa_spec)


def tosa_target(spec: str) -> str:
    """The target whose profiles a specification names; one of both is for programs that say what is quantised."""
    version, *words = spec.split("+")
    if version.startswith("TOSA-0.80"):
        return "tosa-0.80-mi" if "MI" in words else "tosa-0.80-bi"
    return "tosa-int" if "INT" in words and "FP" not in words else "tosa-fp"


class VgfCompileSpec(ArmCompileSpec):
    """For the ML extensions for Vulkan.

    Args:
        tosa_spec: as of TosaCompileSpec; default: both profiles.
        compiler_flags: of the model converter, e.g. ["--disable-replicated-composites"].
    """

    _format = "vgf"

    def __init__(self, tosa_spec: Any = None, compiler_flags: list[str] | None = None) -> None:
        super().__init__("vgf", tosa_spec or _targets()["vgf"].tosa_spec, compiler_flags)

    def options(self) -> dict[str, list[str]]:
        """The core's options."""
        given = super().options()
        if self.compiler_flags:
            given["vgf-flags"] = self.compiler_flags
        return given

    def validate_environment(self, build_dir: str | None = None, *,
                             require_runtime_build: bool = False) -> VgfEnvironmentReport:
        """ExecuTorch's report, with nothing that could fail: tosaic writes VGF itself, without Arm's converter, and builds
        no runtime. Both arguments are about such a build."""
        from executorch.backends.arm.vgf.check_env import STATUS_OK, VgfEnvironmentCheck, VgfEnvironmentReport

        check = VgfEnvironmentCheck("tosaic", STATUS_OK, f"tosaic {_core.version()} writes VGF files itself")
        return VgfEnvironmentReport([check], mode="aot")


@dataclass(frozen=True)
class VelaExternalBlockPlacements:
    """Which parts of an Ethos-U payload are kept outside the .pte, each in the .ptd of its tag; None: inside.

    Attributes:
        cmd_data: of the command stream.
        weight_data: of the weights.
    """

    cmd_data: str | None = None
    weight_data: str | None = None

    def __post_init__(self) -> None:
        for tag in (self.cmd_data, self.weight_data):
            if tag is not None and (not isinstance(tag, str) or not tag or not tag.isascii()):
                raise ValueError(f"Invalid external Vela placement: {tag!r}")

    def to_block_placements(self) -> dict[str, str]:
        """Those that are given, by Vela's name of the block."""
        rows = {"cmd_data": self.cmd_data, "weight_data": self.weight_data}
        return {block: tag for block, tag in rows.items() if tag is not None}


class EthosUCompileSpec(ArmCompileSpec):
    """For an Ethos-U NPU.

    Args:
        target: "ethos-u55-128", ...
        system_config, memory_mode: sections of Vela's configuration; default: the product's.
        extra_flags: further options for Vela, a list or one text.
        config_ini: a configuration of your own; default: Vela's.
        external_block_placements: what is kept outside the .pte.
    """

    _format = "vela"
    _OURS = ("--accelerator-config", "--output-format", "--output-dir")  # what the core sets by itself

    def __init__(self, target: str, system_config: str | None = None, memory_mode: str | None = None,
                 extra_flags: list[str] | str | None = None, config_ini: str | None = "Arm/vela.ini",
                 external_block_placements: VelaExternalBlockPlacements | None = None) -> None:
        target = target.lower()
        if target not in _targets() or not target.startswith("ethos-u"):
            known = ", ".join(t for t in _targets() if t.startswith("ethos-u"))
            raise ValueError(f"Unknown Ethos-U target: {target}; there are {known}")
        flags = extra_flags.split() if isinstance(extra_flags, str) else list(extra_flags or [])
        flags.append(f"--accelerator-config={target}")
        flags.append(f"--config={config_ini or 'Arm/vela.ini'}")
        flags.append("--output-format=raw")
        flags += [f"--system-config={system_config}"] if system_config else []
        flags += [f"--memory-mode={memory_mode}"] if memory_mode else []
        self.external_block_placements = external_block_placements or VelaExternalBlockPlacements()
        super().__init__(target, _targets()[target].tosa_spec, flags)

    def options(self) -> dict[str, list[str]]:
        """The core's options: what it knows by a name of its own, and flags for Vela."""
        given = super().options()
        known = {"--system-config": "system-config", "--memory-mode": "memory-mode", "--config": "vela-config"}
        for flag in self.compiler_flags:
            name, _, value = flag.partition("=")
            if name in known:
                if flag != "--config=Arm/vela.ini":
                    given[known[name]] = [value]
            elif name not in self._OURS:
                given.setdefault("vela-flags", []).append(flag)
        return given

    def _further(self) -> dict[str, str]:
        blocks = self.external_block_placements.to_block_placements()
        return {"external_block_placements": json.dumps(blocks, sort_keys=True)} if blocks else {}

    def _restore(self, rows: dict[str, str]) -> None:
        super()._restore(rows)
        self.external_block_placements = VelaExternalBlockPlacements(
            **json.loads(rows.get("external_block_placements", "{}")))


class VulkanCompileSpec(ArmCompileSpec):
    """For any device with Vulkan, by compute shaders.

    Args:
        compile_options: ExecuTorch's. Of no effect here are those of textures, layouts and memory, which tosaic has not, and
            `force_fp16`: it computes in the dtypes of the program. `skip_bool_tensors` is the partitioner's.

    Raises:
        ValueError: for options that would change the result (`require_dynamic_shapes`, `external_constants_max_data_bytes`)
            and for unknown ones.
    """

    _format = "vulkan"
    _KNOWN = ("storage_type_override", "memory_layout_override", "skip_tag_memory_metadata", "downcast_64_bit",
              "force_fp16", "small_texture_limits", "texture_limits", "buffer_limit", "skip_memory_planning",
              "alias_buffer_mutations", "skip_bool_tensors")

    def __init__(self, compile_options: dict[str, Any] | None = None):
        for name, value in (compile_options or {}).items():
            if name in ("require_dynamic_shapes", "external_constants_max_data_bytes"):
                if value:
                    raise ValueError(f"{name}: tosaic's programs for Vulkan have fixed shapes and keep their constants")
            elif name not in self._KNOWN:
                raise ValueError(f"unknown compile option {name!r}; there are {', '.join(self._KNOWN)}")
        super().__init__("vulkan", _targets()["vulkan"].tosa_spec)


class ArmCompileSpecBuilder:
    """The older way to a compile spec: one call for the target, some for the rest, `build()`."""

    def __init__(self) -> None:
        self._spec: ArmCompileSpec | None = None
        self._path: str | None = None
        self._debug: ArmCompileSpec.DebugMode | None = None

    def ethosu_compile_spec(self, target: str, system_config: str | None = None, memory_mode: str | None = None,
                            extra_flags: list[str] | str | None = None, config_ini: str | None = "Arm/vela.ini") -> Self:
        """For an Ethos-U NPU; arguments as of EthosUCompileSpec."""
        return self._take(EthosUCompileSpec(target, system_config, memory_mode, extra_flags, config_ini))

    def vgf_compile_spec(self, tosa_spec: Any = None, compiler_flags: list[str] | str | None = None) -> Self:
        """For the ML extensions for Vulkan; arguments as of VgfCompileSpec."""
        flags = compiler_flags.split() if isinstance(compiler_flags, str) else compiler_flags
        return self._take(VgfCompileSpec(tosa_spec, flags))

    def tosa_compile_spec(self, tosa_spec: Any) -> Self:
        """For TOSA; the argument as of TosaCompileSpec."""
        return self._take(TosaCompileSpec(tosa_spec))

    def set_input_order(self, input_order: str | None = None) -> Self:
        """Taken and not used: inputs have the program's order."""
        return self

    def dump_intermediate_artifacts_to(self, output_path: str | None) -> Self:
        """As of the compile specs."""
        self._path = output_path
        return self

    def dump_debug_info(self, debug_mode: ArmCompileSpec.DebugMode | None) -> Self:
        """As of the compile specs."""
        self._debug = debug_mode
        return self

    def build(self) -> ArmCompileSpec:
        """The compile spec. Raises Error where no target was named."""
        if self._spec is None:
            raise Error(code="spec.target", message="the builder has no target",
                        help="call ethosu_compile_spec, vgf_compile_spec or tosa_compile_spec before build()")
        return self._spec.dump_intermediate_artifacts_to(self._path).dump_debug_info(self._debug)

    def _take(self, spec: ArmCompileSpec) -> Self:
        if self._spec is not None:
            raise Error(code="spec.target", message="the builder has a target already", help="use another builder")
        self._spec = spec
        return self
