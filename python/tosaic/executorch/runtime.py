# SPDX-License-Identifier: Apache-2.0
"""tosaic's backends in ExecuTorch's own runtime. Importing this module is all that is needed:

    import tosaic.executorch.runtime
    from executorch.runtime import Runtime
    method = Runtime.get().load_program("model.pte").load_method("forward")

It loads the plug-in, a library of tosaic's built for one minor version of ExecuTorch. ImportError says what is in the way.
"""
from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import mmap
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

__all__ = ["Method", "MissingBackend", "Program", "backends", "load_program", "plugin", "set_option"]

_LIBRARY = "libtosaic_executorch.so"
_COMMAND = "make plugin PYTHON={python}, in tosaic's sources, builds it for the ExecuTorch of that environment"


class MissingBackend(RuntimeError):
    """A program needs backends that no library in the process has registered."""


def _find() -> pathlib.Path:
    if chosen := os.environ.get("TOSAIC_EXECUTORCH_PLUGIN"):
        if pathlib.Path(chosen).is_file():
            return pathlib.Path(chosen)
        raise ImportError(f"TOSAIC_EXECUTORCH_PLUGIN names {chosen}, which is no file")
    here = pathlib.Path(__file__).resolve()
    places = [here.parents[1] / "lib" / _LIBRARY]  # of the package
    if len(here.parents) > 3:
        places += [here.parents[3] / "build/release" / folder / _LIBRARY for folder in ("lib", "python/tosaic/lib")]  # of the sources
    for place in places:
        if place.is_file():
            return place
    raise ImportError(f"the ExecuTorch plug-in is not here: this tosaic was built without it ({places[0]} is missing).\n"
                      f"{_COMMAND.format(python=sys.executable)}; TOSAIC_EXECUTORCH_PLUGIN can name the file")


def _built_for(file: pathlib.Path) -> str:
    """The minor version of ExecuTorch that a plug-in is for, without loading it: it would not load next to another one."""
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if found := re.search(rb"tosaic plug-in for ExecuTorch (\d+\.\d+)\0", content):
            return found.group(1).decode()
    raise ImportError(f"{file} is no ExecuTorch plug-in of tosaic")


def _check_executorch(minor: str, file: pathlib.Path) -> None:
    try:
        version = importlib.metadata.version("executorch")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"ExecuTorch is not installed; this plug-in needs it: pip install 'executorch=={minor}.*'") from None
    if not re.match(re.escape(minor) + r"\.", version):
        raise ImportError(f"the plug-in {file} is built for ExecuTorch {minor}, and {version} is installed.\n"
                          f"pip install 'executorch=={minor}.*'; or: {_COMMAND.format(python=sys.executable)}")


def _load() -> tuple[pathlib.Path, ctypes.CDLL]:
    file = _find()
    minor = _built_for(file)
    _check_executorch(minor, file)
    import executorch.runtime  # noqa: F401  loads libexecutorch.so, with the registry
    try:  # a name that is loaded already, or nothing
        ctypes.CDLL("libexecutorch.so", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        raise ImportError("this build of ExecuTorch has its runtime inside the Python extension (no libexecutorch.so is "
                          "loaded), where no other library can register backends; PyPI's wheels for Linux since 1.5 "
                          "have it as a library") from None
    with contextlib.suppress(ImportError):  # programs of integers take and give floats by these kernels
        import executorch.kernels.quantized  # noqa: F401
    try:
        library = ctypes.CDLL(os.fspath(file))
    except OSError as why:
        raise ImportError(f"the ExecuTorch plug-in {file} cannot be loaded: {why}") from None
    for name in "version", "backends", "problem", "missing", "error":
        getattr(library, f"tosaic_executorch_{name}").restype = ctypes.c_char_p
    library.tosaic_executorch_missing.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.tosaic_executorch_set.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p]
    problem = library.tosaic_executorch_problem().decode()
    if not library.tosaic_executorch_backends():
        raise ImportError(f"{file} could not register a backend:\n{problem}")
    if problem:
        warnings.warn(problem, RuntimeWarning, stacklevel=3)
    return file, library


plugin, _plugin = _load()  # the file that is loaded

from executorch import runtime as _runtime  # noqa: E402  after its version has been looked at
from executorch.runtime import Runtime  # noqa: E402


@contextlib.contextmanager
def _words() -> Iterator[None]:
    """ExecuTorch's RuntimeError is a number, the words are in a log that a notebook does not show: here with both."""
    _plugin.tosaic_executorch_error()
    try:
        yield
    except RuntimeError as error:
        if said := _plugin.tosaic_executorch_error().decode(errors="backslashreplace"):
            raise RuntimeError(f"{error}\n{said}") from None
        raise


class Method(_runtime.Method):
    """ExecuTorch's, with the words of tosaic's backends in its errors. It holds the program, whose bytes it goes on reading."""

    def __init__(self, method: Any, program: Program) -> None:
        super().__init__(method)
        self._program = program

    def execute(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Runs the method.

        Args:
            inputs: the flattened inputs, tensors with the dtypes, sizes and dim orders of the program.

        Returns:
            The flattened outputs.

        Raises:
            RuntimeError: ExecuTorch's code, and in words what a backend of tosaic's refused.
        """
        with _words():
            return super().execute(inputs)


class Program(_runtime.Program):
    """ExecuTorch's, with the words of tosaic's backends in its errors."""

    def load_method(self, name: str) -> Method:
        """Makes a method ready to run. Raises RuntimeError, with the reason in words, where a payload is refused."""
        with _words():
            return Method(super().load_method(name)._method, self)


def backends() -> list[str]:
    """The backends that the plug-in has registered."""
    return _plugin.tosaic_executorch_backends().decode().split()


def set_option(key: str, value: str | int | bool, backend: str | None = None) -> None:
    """Decides about programs that are loaded from now on, for one backend or all: `threads` (0: all cores), `reference`
    (slow loops that read like the standard), `device` ("ethos-u55-128": what a payload must be made for; of VulkanBackend
    "cpu" or "vulkan": where it runs), `heap` (tensors' memory from the heap), `log` (0, 1: a line per payload, 2: a line
    per operation)."""
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if _plugin.tosaic_executorch_set(backend.encode() if backend else None, key.encode(), text.encode()):
        raise ValueError(f"{backend or 'the plug-in'} has no option {key!r} that may be {value!r}; known are threads, "
                         f"reference, device, heap and log, the backends are {', '.join(backends())}")


def _missing(data: str | os.PathLike | bytes | BinaryIO) -> list[str]:
    if isinstance(data, (bytes, bytearray)):
        return _plugin.tosaic_executorch_missing(bytes(data), len(data)).decode(errors="backslashreplace").split()
    if not isinstance(data, (str, os.PathLike)) or os.path.getsize(data) == 0:
        return []  # for ExecuTorch to read, or to refuse
    with open(data, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        view = ctypes.c_char.from_buffer(content)
        try:
            return _plugin.tosaic_executorch_missing(ctypes.addressof(view), len(content)).decode(errors="backslashreplace").split()
        finally:
            del view  # the mapping is not closed while something points into it


def load_program(data: str | os.PathLike | bytes | BinaryIO, **options: Any) -> Program:
    """ExecuTorch's Runtime.get().load_program(data, **options) with better words: MissingBackend where the process has not
    what the program needs, and why a payload or an input was refused in the RuntimeErrors of load_method and execute."""
    if missing := _missing(data):
        there = ", ".join(sorted(Runtime.get().backend_registry.registered_backend_names))
        name = "the program" if isinstance(data, (bytes, bytearray)) else os.fspath(data)
        raise MissingBackend(f"{name} needs {', '.join(missing)}, which nothing in this process has registered; there are "
                             f"{there}.\nLoad the library that has it, or compile the model for a target of tosaic's "
                             "backends")
    loaded = Runtime.get().load_program(data, **options)
    return Program(loaded._program, loaded._data)
