# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's names, with tosaic behind them.

    from tosaic.executorch import EthosUCompileSpec, EthosUPartitioner, EthosUQuantizer

Compile specs, partitioners, quantizers and backends for `executorch.exir.to_edge_transform_and_lower` and torchao's PT2E;
`import tosaic.executorch.runtime` lets ExecuTorch's own runtime run what they make. Each name is imported when it is first
asked for.
"""

import importlib

_MODULES = {
    "compile_specs": ("ArmCompileSpecBuilder", "EthosUCompileSpec", "TosaCompileSpec", "VelaExternalBlockPlacements",
                      "VgfCompileSpec"),
    "backend": ("EthosUBackend", "TOSABackend", "VgfBackend"),
    "partitioner": ("ArmPartitioner", "EthosUPartitioner", "TOSAPartitioner", "VgfPartitioner"),
    "quantizer": ("EthosUQuantizer", "TOSAQuantizer", "VgfQuantizer", "get_symmetric_a16w8_quantization_config",
                  "get_symmetric_a8w4_quantization_config", "get_symmetric_quantization_config",
                  "get_uint8_io_quantization_config", "get_vgf_snorm_quantization_config"),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
