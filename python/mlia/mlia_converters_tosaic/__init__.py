# SPDX-License-Identifier: Apache-2.0
"""tosaic as a converter of MLIA: what its entry points `mlia.plugin.transformer` name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlia.plugins.plugins import Plugin

from .conversion import Conversion, Pt2ToPte, Pt2ToTosa

__all__ = ["Pt2ToPte", "Pt2ToPtePlugin", "Pt2ToTosa", "Pt2ToTosaPlugin"]


class _Converter:
    """A conversion as MLIA calls it: asked whether it can, then with a folder to write to."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion

    def supports(self, model: object, target_format: str, transform_options: dict[str, Any] | None = None) -> bool:
        """Whether `model` is a .pt2 file, `target_format` what this writes, and the options are those that it takes."""
        return (isinstance(model, Path) and model.suffix.lower() == ".pt2" and target_format == self.conversion.makes
                and self.conversion.takes(transform_options or {}))

    def __call__(self, model: Path, output_dir: Path, **options: Any) -> Path:
        """Writes the converted file into `output_dir` and gives its path. Raises NotADirectoryError, and ConfigurationError
        with what tosaic says."""
        from mlia.core.errors import ConfigurationError
        from tosaic import Error

        if not output_dir.is_dir():
            raise NotADirectoryError(f"'{output_dir}' is no folder to write to")
        try:
            content = self.conversion(model, **options)
        except (Error, ValueError) as why:
            raise ConfigurationError(f"tosaic cannot convert {model} to .{self.conversion.makes}: {why}") from why
        path = output_dir / f"{model.stem}.{self.conversion.makes}"
        path.write_bytes(content)
        return path


def _plugin(name: str, conversion: type[Conversion]) -> type[Plugin]:
    class Registering(Plugin):
        plugin_interface_version = "0.0.1"

        @staticmethod
        def register(registry: Any) -> None:
            # Not under the name of Arm's converter: MLIA keeps the first of a name and says nothing of others.
            registry.register(f"tosaic_{name}", _Converter(conversion()))

    return Registering


Pt2ToTosaPlugin = _plugin("pt2_to_tosa", Pt2ToTosa)
Pt2ToPtePlugin = _plugin("pt2_to_pte", Pt2ToPte)
