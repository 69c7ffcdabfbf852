# SPDX-License-Identifier: Apache-2.0
"""Programs: what is compiled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _core, _exported, _exporting
from ._errors import Error, tell
from ._options import values_of
from ._pytree import Call, Tree, trees_of
from ._session import Session, session_options


class Program:
    """A program that PyTorch exported, read once and compiled as often as wanted, for any targets, from any threads.

    Its weights are not copied: they stay in the mapped file, or in the tensors of the `ExportedProgram`, which must not
    change while the program or an artifact of it is used.

    Attributes:
        messages: notes and warnings from reading it, as `Diagnostic`: which calls were decomposed, among others.
    """

    messages: list[_core.Diagnostic]

    def __init__(self, core: _core.Program, exported: Any = None,
                 messages: list[_core.Diagnostic] | None = None) -> None:
        self._core, self._exported = core, exported
        self._parts: dict[str, Program] = {}  # the methods of several programs
        self.messages = messages or []

    @staticmethod
    def of(model: Any, example_inputs: Any = None, example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None,
           stacklevel: int = 2) -> Program:
        """The program of anything that is one.

        Args:
            model: a path (`.pt2`, or a graph as text), its bytes, an `ExportedProgram`, a `Program`, or a
                `torch.nn.Module`, which is exported in inference mode. A dict of these but modules: the methods of one
                program, by name, which share weights and the buffers of equal names.
            example_inputs: for a module: the tuple of arguments of a call, or its only argument.
            example_kwargs: for a module: the call's keyword arguments.
            dynamic_shapes: for a module, as `torch.export.export` takes it.

        Raises:
            Error: file.*, pt2.*, text.*, program.*.
        """
        if isinstance(model, Program):
            return model
        if isinstance(model, dict):
            if model and all(hasattr(value, "__dlpack__") for value in model.values()):
                raise Error(code="program.state-dict", message="that is a state_dict: weights without a program",
                            help="load them into the module, model.load_state_dict(...), and give the module with example_inputs")
            parts = {name: Program.of(part, stacklevel=stacklevel + 1) for name, part in model.items()}
            core = _core.Program.together({name: part._core for name, part in parts.items()}, "program")
            together = Program(core, None, [d for part in parts.values() for d in part.messages])
            together._parts = parts
            return together
        if isinstance(model, (str, os.PathLike)):
            core, said = _core.Program.open(os.fspath(model))
            exported = None
        elif isinstance(model, (bytes, bytearray, memoryview)):
            core, said = _core.Program.from_bytes(bytes(model), "program")
            exported = None
        elif _exported.is_exported(model):
            core, said = _exported.held(model)
            exported = model
        elif _exported.is_module(model):
            exported = _exporting.export(model, example_inputs, example_kwargs, dynamic_shapes)
            core, said = _exported.held(exported, type(model).__name__)
            _exporting.tell_of_doubles(model, exported, stacklevel + 1)
        else:
            raise Error(code="program.kind", message=f"a {type(model).__qualname__} is no program",
                        help="give a torch.nn.Module with example_inputs, an ExportedProgram, or the path of a .pt2")
        tell(said, stacklevel + 1)
        return Program(core, exported, said)

    def _trees(self) -> tuple[Call | None, Tree | None]:
        if len(self._core.methods) > 1:
            return None, None
        return trees_of(self._core, self._exported, [a.name for a in self._core.methods[0]["inputs"]])

    def _call(self, method: str) -> tuple[Call | None, list[_core.Argument]]:
        """How a method is called, as far as that is known, and what its leaves are."""
        tree = self._parts[method]._trees()[0] if method in self._parts else self._trees()[0]
        return tree, next(m["inputs"] for m in self._core.methods if m["name"] == method)

    def with_input_layout(self, choices: str | Sequence[str] | None) -> Program:
        """The program with images as batch, height, width, channels, as the option `input_layout` asks for.

        Args:
            choices: "nhwc", of all inputs of four dimensions; "NAME=nhwc", of one; several: the later win; None: as it is.

        Raises:
            Error: option.layout.
        """
        if choices is None:
            return self
        made = Program(self._core.with_input_layout(values_of(choices)), self._exported, self.messages)
        made._parts = self._parts
        return made

    @property
    def name(self) -> str:
        """The file's without its ending, or the module's class."""
        return self._core.name

    @property
    def torch_version(self) -> str:
        """Of the PyTorch that exported it; empty: graph text."""
        return self._core.torch_version

    @property
    def methods(self) -> list[str]:
        """Their names, in order; of one program "forward"."""
        return [m["name"] for m in self._core.methods]

    @property
    def inputs(self) -> list[_core.Argument]:
        """In the order of the pytree's leaves; of several methods the first one's, as `outputs`."""
        return self._core.methods[0]["inputs"]

    @property
    def outputs(self) -> list[_core.Argument]:
        """What it gives, in the order of the pytree's leaves."""
        return self._core.methods[0]["outputs"]

    def session(self, *, executor: str = "cpu", device: str = "auto", vulkan_device: str = "", threads: int = 0) -> Session:
        """Runs the program itself, in floats: what a target's integers are to be compared with.

        Raises:
            Error: run.device, and what the CPU does not run.
        """
        core, said = _core.Session.of_program(
            self._core, session_options(executor, "forward", device, vulkan_device, threads, None))
        tell(said)
        return Session(core, *self._trees(), self.inputs, self._core.methods[0]["written_inputs"])

    def __repr__(self) -> str:
        method = self._core.methods[0]
        return f"<tosaic.Program {self.name}: {method['nodes']} nodes, {method['inputs']} -> {method['outputs']}>"
