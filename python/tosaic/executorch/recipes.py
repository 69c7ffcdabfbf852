# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's recipes for tosaic's targets: quantizer, partitioner and settings as one value.

    from executorch.export import ExportRecipe, export
    from tosaic.executorch.recipes import ArmRecipeType

    session = export(model, [inputs], ExportRecipe.get_recipe(ArmRecipeType.ETHOS_U55_INT8))
    session.save_to_pte("model.pte")

Importing the module registers its provider, under the name "tosaic"; ExecuTorch's own Arm recipes ("arm") stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig
from executorch.export import (
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
    recipe_registry,
)

from .. import _core
from ._scripts import create_partitioner, create_quantizer
from .compile_specs import ArmCompileSpec, EthosUCompileSpec, TosaCompileSpec, VgfCompileSpec, VulkanCompileSpec
from .partitioner import VulkanPartitioner
from .quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config, get_symmetric_quantization_config

_NAME = "tosaic"


class ArmRecipeType(RecipeType):
    """What a program is made for, and with which integers: ExecuTorch's names, and further ones.

    INT8 has weights and activations of 8 bits, A16W8 activations of 16, FP none. The Ethos-U recipes take the arguments of
    `EthosUCompileSpec` (`system_config`, `memory_mode`, `extra_flags`, `config_ini`) and `macs`; those with integers take
    `calibration_inputs_fn`, a function that gives the samples as tuples of inputs (else the example inputs are the samples).
    """

    ETHOS_U55_INT8 = "arm_ethos_u55_int8"
    ETHOS_U65_INT8 = "arm_ethos_u65_int8"
    ETHOS_U85_INT8 = "arm_ethos_u85_int8"
    ETHOS_U55_A16W8 = "arm_ethos_u55_a16w8"
    ETHOS_U65_A16W8 = "arm_ethos_u65_a16w8"
    ETHOS_U85_A16W8 = "arm_ethos_u85_a16w8"
    TOSA_FP = "arm_tosa_fp"
    TOSA_INT8 = "arm_tosa_int8"
    TOSA_A16W8 = "arm_tosa_a16w8"
    VGF_FP = "arm_vgf_fp"
    VGF_INT8 = "arm_vgf_int8"
    VULKAN_FP = "tosaic_vulkan_fp"
    VULKAN_INT8 = "tosaic_vulkan_int8"

    @classmethod
    def get_backend_name(cls) -> str:
        """The provider's name."""
        return _NAME


_MACS = {"u55": 128, "u65": 256, "u85": 256}  # where `macs` is not given, as in ExecuTorch
_CONFIGS: dict[str, Callable[[], Any]] = {"INT8": get_symmetric_quantization_config, "A16W8": get_symmetric_a16w8_quantization_config}
_TOSA = {"FP": "TOSA-1.0+FP", "INT8": "TOSA-1.0+INT", "A16W8": "TOSA-1.0+INT+int16"}


class ArmRecipeProvider(BackendRecipeProvider):
    """Makes the recipes of `ArmRecipeType`."""

    @property
    def backend_name(self) -> str:
        """"tosaic"."""
        return _NAME

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of `ArmRecipeType`."""
        return list(ArmRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type that is not of `ArmRecipeType`.

        Args:
            recipe_type: one of `ArmRecipeType`.
            kwargs: `macs`: of an Ethos-U, multiplications per cycle; without: 128 (U55), 256 (U65, U85).
                `calibration_inputs_fn`: of recipes with integers, gives the samples, each a tuple of inputs. All others are
                arguments of `EthosUCompileSpec`, or of the target's other compile spec.

        Raises:
            ValueError: for a number of MACs that the product has not, and arguments that the compile spec does not take.
        """
        if not isinstance(recipe_type, ArmRecipeType):
            return None
        arguments = dict(kwargs)
        macs: int | None = arguments.pop("macs", None)
        calibration_inputs_fn: Callable[[], Iterable[tuple]] | None = arguments.pop("calibration_inputs_fn", None)
        device, _, integers = recipe_type.name.rpartition("_")
        spec = _spec_of(device, integers, macs, arguments)
        vulkan = isinstance(spec, VulkanCompileSpec)
        quantization = None
        if integers in _CONFIGS:
            quantizer = TOSAQuantizer(spec.target) if vulkan else create_quantizer(spec)
            quantizer.set_global(_CONFIGS[integers]())
            quantization = QuantizationRecipe(quantizers=[quantizer], calibration_inputs_fn=calibration_inputs_fn)
        elif calibration_inputs_fn is not None:
            raise ValueError(f"{recipe_type.value} has no integers: calibration_inputs_fn is of no use to it")
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization,
            lowering_recipe=LoweringRecipe(partitioners=[VulkanPartitioner(**arguments) if vulkan else create_partitioner(spec)],
                                           edge_compile_config=EdgeCompileConfig(_check_ir_validity=False)),
            executorch_backend_config=ExecutorchBackendConfig(extract_delegate_segments=False))  # fmt: skip


def _spec_of(device: str, integers: str, macs: int | None, arguments: dict[str, Any]) -> ArmCompileSpec:
    kinds = {"TOSA": TosaCompileSpec, "VGF": VgfCompileSpec, "VULKAN": VulkanCompileSpec}
    family = device.removeprefix("ETHOS_").lower()
    if family in _MACS:
        target = f"ethos-{family}-{_MACS[family] if macs is None else macs}"
        known = [t.name for t in _core.targets() if t.name.startswith(f"ethos-{family}-")]
        if target not in known:
            raise ValueError(f"macs={macs}: there are {', '.join(name.rpartition('-')[2] for name in known)}")
        kind: Callable[..., ArmCompileSpec] = EthosUCompileSpec
        given: tuple = (target,)
    else:
        if macs is not None:
            raise ValueError("macs is of Ethos-U alone")
        kind, given = kinds[device], () if device == "VULKAN" else (_TOSA[integers],)
    try:
        return kind(*given, **arguments)
    except TypeError as why:
        raise ValueError(f"{kind.__name__}: {why}") from why


recipe_registry.register_backend_recipe_provider(ArmRecipeProvider())
