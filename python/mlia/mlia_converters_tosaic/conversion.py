# SPDX-License-Identifier: Apache-2.0
"""What the converters compute, without MLIA: a .pt2 file to the bytes of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol


class Conversion(Protocol):
    """From a .pt2 file to the bytes of a `makes` file."""

    makes: str

    def takes(self, options: dict[str, Any]) -> bool:
        """Are these options of `__call__`?"""

    def __call__(self, model: Path, **options: Any) -> bytes:
        """Raises tosaic.Error."""


class Pt2ToTosa:
    """TOSA 1.0, the whole program as one graph."""

    makes = "tosa"

    def takes(self, options: dict[str, Any]) -> bool:
        """`enable_quantization`, a bool."""
        return set(options) <= {"enable_quantization"} and isinstance(options.get("enable_quantization", True), bool)

    def __call__(self, model: Path, enable_quantization: bool = True) -> bytes:
        """Profile INT, or FP without quantisation. Raises tosaic.Error, with the user's line, where a node is not in TOSA."""
        if enable_quantization:  # the boundary's integers are the graph's
            return _compiled(model, "tosa-int", {"single_delegate": True, "io": "quantized"}).piece("tosa")
        return _compiled(model, "tosa-fp", {"single_delegate": True}).piece("tosa")


class Pt2ToPte:
    """An ExecuTorch program for an Ethos-U NPU."""

    makes = "pte"
    _NEEDED = ("target", "mac", "system_config", "memory_mode")

    def takes(self, options: dict[str, Any]) -> bool:
        """`executorch_target_config`: target ("ethos-u55"), mac (128), system_config and memory_mode."""
        config = options.get("executorch_target_config")
        return set(options) == {"executorch_target_config"} and isinstance(config, dict) and all(config.get(k) for k in self._NEEDED)

    def __call__(self, model: Path, executorch_target_config: dict[str, Any]) -> bytes:
        """Raises tosaic.Error for a target that there is not, ValueError for a program that the target takes nothing of."""
        target, mac, system_config, memory_mode = (executorch_target_config[name] for name in self._NEEDED)
        made = _compiled(model, f"{target}-{mac}", {"system_config": system_config, "memory_mode": memory_mode})
        if made.summary.delegates == 0:
            raise ValueError(f"{target}-{mac} takes no node of it; tosaic explain {model.name} --target {target}-{mac} says why")
        return made.pte


def _compiled(model: Path, target: str, options: dict[str, Any]) -> Any:
    """The artifact. Integers are calibrated with the example inputs in the file; a program that is
    quantised already needs none."""
    import tosaic
    import torch

    program = torch.export.load(model)
    args, kwargs = program.example_inputs or ((), {})
    sample = kwargs if kwargs and not args else tuple(args)
    calibration = [sample] if sample and target != "tosa-fp" else None
    return tosaic.compile(program, target=target, calibration=calibration, progress=False, **options)
