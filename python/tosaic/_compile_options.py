# SPDX-License-Identifier: Apache-2.0
# Made by test/python/test_types.py; `make pages` writes it again.
"""The options of `tosaic.compile` and the other questions, for editors and type checkers."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict


class CompileOptions(TypedDict, total=False):
    """What `help(tosaic.compile)` explains; None is the default."""

    quantize: Literal['auto', 'int8', 'int16x8', 'dynamic-int8'] | None
    quantise: Literal['auto', 'int8', 'int16x8', 'dynamic-int8'] | None
    io: Literal['float', 'quantized'] | None
    observer: Literal['histogram', 'minmax'] | None
    effort: Literal['fast', 'default', 'best'] | None
    bias_correction: bool | None
    equalization: bool | None
    rounding: Literal['auto', 'nearest', 'least-squares'] | None
    widen_steep: bool | None
    weights: Literal['per-channel', 'per-tensor', 'int4', 'int8', 'int16'] | None
    group_size: int | None
    plan: str | PathLike[str] | None
    override: str | Sequence[str] | None
    tosa_spec: str | None
    sizes: str | Sequence[str] | None
    input_layout: str | Sequence[str] | None
    budget: str | None
    kv: Literal['float', 'int8'] | None
    require_full_delegation: bool | None
    single_delegate: bool | None
    strip: bool | None
    print_after: str | Sequence[str] | None
    trace_node: str | None
    dump_dir: str | PathLike[str] | None
    threads: int | None
    header_name: str | None
    header_section: str | None
    header_alignment: int | None
    sram: int | str | None
    flash: int | str | None
    kernels: Literal['tosaic', 'cmsis-nn'] | None
    vela: str | PathLike[str] | None
    vela_config: str | PathLike[str] | None
    system_config: str | None
    memory_mode: str | None
    vela_flags: str | Sequence[str] | None
    vela_files: str | PathLike[str] | None
    vela_timeout: int | None
    external: str | Sequence[str] | Mapping[str, str | PathLike[str]] | None
    scratch: int | str | None
    self_check: bool | None
    vgf_converter: str | PathLike[str] | None
    vgf_flags: str | Sequence[str] | None
    vulkan_tiers: Literal['cpu', 'coopmat-int8', 'coopmat', 'dot', 'base'] | Sequence[Literal['cpu', 'coopmat-int8', 'coopmat', 'dot', 'base']] | None
    vulkan_precision: Literal['fp32', 'fp16'] | None
    vulkan_sums: Literal['fp32', 'fp16'] | None
    vulkan_keep_f32: str | Sequence[str] | None
