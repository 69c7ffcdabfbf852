# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's module paths: `tosaic.executorch.X` is what `executorch.backends.arm.X` is, with tosaic's classes for those that
have the same names, and `tosaic.executorch.vulkan.X` what `executorch.backends.vulkan.X` is.

There is no list of modules: a path is looked up in the ExecuTorch that is installed. Modules that it once had have the
names that tosaic has.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_HERE = __package__ + "."
_OURS = ("compile_specs", "backend", "partitioner", "quantizer", "_scripts")
_NOT = ("test", "scripts")  # programs of ExecuTorch's, which are about its own classes
_EARLIER = frozenset(("arm_backend", "arm_partitioner", "tosa_partitioner", "tosa_backend", "tosa_specification", "ethosu_backend",
                      "ethosu_partitioner", "vgf_backend", "vgf_partitioner"))


def ours(name: str) -> Any:
    """tosaic's class or function of this name; None: there is none."""
    for module in _OURS:
        thing = getattr(importlib.import_module(_HERE + module), name, None)
        if not name.startswith("_") and getattr(thing, "__module__", "").startswith(_HERE):
            return thing
    return None


def others(name: str) -> Any:
    """What `executorch.backends.arm` itself has besides tosaic's names. Raises AttributeError."""
    if not name.startswith("_") and _exists("executorch.backends.arm"):
        known = importlib.import_module("executorch.backends.arm")
        if name in getattr(known, "LAZY_IMPORTS", ()):
            return getattr(known, name)
    raise AttributeError(f"module {__package__!r} has no attribute {name!r}")


def theirs(path: str) -> str:
    """ExecuTorch's module for a path below `tosaic.executorch.`."""
    head, _, rest = path.partition(".")
    backend, inner = ("vulkan", rest) if head == "vulkan" else ("arm", path)
    return f"executorch.backends.{backend}" + (f".{inner}" if inner else "")


class _Mirror(ModuleType):
    """A module of ExecuTorch's, or None, as it is here."""

    def __init__(self, name: str, of: str | None) -> None:
        super().__init__(name, f"`{of or 'a module of earlier versions of ExecuTorch'}`, with tosaic's classes.")
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        of = self.__dict__.get("_of")
        vulkan = of is not None and ".vulkan" in of
        mine = ours(name) if not vulkan or name.startswith("Vulkan") else None
        if mine is None and of is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        known = importlib.import_module(of) if of is not None else None
        if mine is None or (known is not None and not hasattr(known, name)):
            mine = getattr(known, name)
        setattr(self, name, mine)
        return mine


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_HERE):
            return None
        inner = fullname[len(_HERE):]
        if inner.split(".")[0] in _NOT or (inner not in _EARLIER and not _exists(theirs(inner))):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=theirs(inner), is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Mirror(spec.name, None if spec.name[len(_HERE):] in _EARLIER else spec.origin)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def install() -> None:
    """From now on, after all finders that there are."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
