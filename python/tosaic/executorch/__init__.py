# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's names, implemented by tosaic.

    from tosaic.executorch import EthosUCompileSpec, EthosUPartitioner, EthosUQuantizer

Compile specs, partitioners, quantizers and backends for `executorch.exir.to_edge_transform_and_lower` and torchao's PT2E;
`import tosaic.executorch.runtime` lets ExecuTorch's own runtime run what they make. Each name is imported when it is first
asked for. ExecuTorch's module paths are here, too: in a script, `tosaic.executorch` in place of
`executorch.backends.arm` is all that changes.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import _mirror

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .backend import EthosUBackend as EthosUBackend
    from .backend import TosaicVulkan as TosaicVulkan
    from .backend import TOSABackend as TOSABackend
    from .backend import VgfBackend as VgfBackend
    from .calibration import calibrate as calibrate
    from .compile_specs import ArmCompileSpecBuilder as ArmCompileSpecBuilder
    from .compile_specs import EthosUCompileSpec as EthosUCompileSpec
    from .compile_specs import TosaCompileSpec as TosaCompileSpec
    from .compile_specs import VelaExternalBlockPlacements as VelaExternalBlockPlacements
    from .compile_specs import VgfCompileSpec as VgfCompileSpec
    from .compile_specs import VulkanCompileSpec as VulkanCompileSpec
    from .partitioner import ArmPartitioner as ArmPartitioner
    from .partitioner import EthosUPartitioner as EthosUPartitioner
    from .partitioner import TOSAPartitioner as TOSAPartitioner
    from .partitioner import VgfPartitioner as VgfPartitioner
    from .partitioner import VulkanPartitioner as VulkanPartitioner
    from .quantizer import EthosUQuantizer as EthosUQuantizer
    from .quantizer import TOSAQuantizer as TOSAQuantizer
    from .quantizer import VgfQuantizer as VgfQuantizer
    from .quantizer import get_symmetric_a8w4_quantization_config as get_symmetric_a8w4_quantization_config
    from .quantizer import get_symmetric_a16w8_quantization_config as get_symmetric_a16w8_quantization_config
    from .quantizer import get_symmetric_quantization_config as get_symmetric_quantization_config
    from .quantizer import get_uint8_io_quantization_config as get_uint8_io_quantization_config
    from .quantizer import get_vgf_snorm_quantization_config as get_vgf_snorm_quantization_config

_MODULES = {
    "compile_specs": ("ArmCompileSpecBuilder", "EthosUCompileSpec", "TosaCompileSpec", "VelaExternalBlockPlacements",
                      "VgfCompileSpec", "VulkanCompileSpec"),
    "calibration": ("calibrate",),
    "backend": ("EthosUBackend", "TOSABackend", "TosaicVulkan", "VgfBackend"),
    "partitioner": ("ArmPartitioner", "EthosUPartitioner", "TOSAPartitioner", "VgfPartitioner", "VulkanPartitioner"),
    "quantizer": ("EthosUQuantizer", "TOSAQuantizer", "VgfQuantizer", "get_symmetric_a16w8_quantization_config",
                  "get_symmetric_a8w4_quantization_config", "get_symmetric_quantization_config",
                  "get_uint8_io_quantization_config", "get_vgf_snorm_quantization_config"),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOME)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        else:
            value = _mirror.others(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


_mirror.install()
