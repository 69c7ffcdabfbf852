# SPDX-License-Identifier: Apache-2.0
"""Sessions: what runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from . import _core
from ._errors import Error, tell
from ._pytree import Call, Flat, Tree
from ._tensors import describe, maker_for, number, writer_to


class OperationTime(NamedTuple):
    """How long a part of a run took."""
    operation: str  # what ran: a kernel, a delegate
    seconds: float
    within: str  # the delegate inside which it ran, whose own row stands before and includes this time; or ""
    value: str  # the name of what it computes; or "", where what ran does not say
    place: str  # where the program asks for it, "features.3.conv, model.py:6"; or "": a VGF file holds no source locations


class Session:
    """Something that runs: loaded once, run again and again. For one thread at a time; clones are for others.

    A program's state (buffers that it writes) is kept from run to run until `reset`.
    """

    def __init__(self, core: _core.Session, call: Call | None = None, result: Tree | None = None,
                 arguments: list[_core.Argument] | None = None, written_inputs: list[int] | None = None) -> None:
        """`written_inputs`: which of the tensors that it takes the module writes to, where that is known."""
        self._core = core
        self._call = call
        self._result = result or Flat()
        self._arguments = arguments if call is not None else None
        self._inputs = core.inputs
        # New contents of inputs that the program writes stand before what it returns.
        self._written = len(core.outputs) - result.leaves if result is not None else 0
        self._written_inputs = written_inputs or []

    @property
    def inputs(self) -> list[_core.TensorInfo]:
        """The tensors that it takes: names, dtypes, sizes."""
        return self._inputs

    @property
    def outputs(self) -> list[_core.Argument]:
        """What it gives: tensors, and values that are no tensors, in the order of the pytree's leaves."""
        return self._core.outputs

    @property
    def device(self) -> str:
        """"cpu", "interp", "vulkan: ...", "ethos-u55-128 (simulated)"."""
        return self._core.device

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it as the exported module is called.

        Args:
            args, kwargs: tensors of PyTorch or NumPy, or objects that speak DLPack, in the CPU's memory, with the dtypes
                and sizes of `inputs`; strides are free. In the module's own containers.

        Returns:
            What the module returns: the same containers, with tensors of the kind that was given (PyTorch's where nothing
            was given and torch is loaded), which own their memory. Tensors that are given are only read, but for those
            that the module itself writes to: they hold their new content after the run, as after a call of the module.
            (A file does not say which these are: of a loaded one that content is left out.)

        Raises:
            Error: run.tree, run.input-type, run.literal, run.read-only, tensor.*, session.busy, and what happens inside.
        """
        leaves, described, alive, tensors = self._described(args, kwargs)
        make = maker_for(leaves)
        writers = [writer_to(tensors[at]) for at in self._written_inputs]
        given = self._core.run(described)
        for write, content in zip(writers, given):
            write(*content)
        del alive  # until here
        return self._returned(given, make)

    def _returned(self, given: list[Any], make: Any = None) -> Any:
        """What the core gave, as the module returns it."""
        make = make or maker_for([])
        return self._result.unflatten([make(*r) if type(r) is tuple else r for r in given[self._written :]])

    __call__ = run

    def run_many(self, calls: Iterable[Any], *, workers: int = 0) -> Iterator[Any]:
        """Runs it on many inputs, several at once, each on a clone: best of a session with threads=1. States are reset
        before each.

        Args:
            calls: an iterable of calls of the module: a tensor, a tuple of arguments, or a dict of them by name. It is read
                as the results are taken, a few calls ahead.
            workers: calls that run at once; 0: as many as there are cores, on a Vulkan device 1.

        Returns:
            An iterator over the results, in the order of the calls, each as `run` gives it.

        Raises:
            Error: run.threads; and what `run` raises, which says the number of the call, from 0 on.
        """
        from ._many import run_many

        return run_many(self, calls, workers)

    def warm(self, *args: Any, **kwargs: Any) -> None:
        """One run that changes no state, so that the first real one takes no longer than the next: states are as
        before. A session that has run is warm: nothing happens.

        Args:
            args, kwargs: as of `run`, what it will be given like; none: the program's examples, or zeros of the largest sizes.

        Raises:
            Error: as `run`; run.input-count where a size has no bound and nothing is given.
        """
        if not args and not kwargs:
            return self._core.warm([])
        _, described, alive, _ = self._described(args, kwargs)
        self._core.warm(described)
        del alive  # until here

    def _described(self, args: tuple, kwargs: dict) -> tuple[list[Any], list[tuple], list[Any], list[Any]]:
        """The call's leaves, its tensors as the core takes them, what has to live as long as these, and the tensors."""
        leaves = self._call.flatten(args, kwargs) if self._call is not None else self._listed(args, kwargs)
        described, alive, tensors = [], [], []
        for leaf, info in self._tensors_among(leaves):
            tensors.append(leaf)
            row, owner = number(leaf, info.dtype, len(info.dims)) if type(leaf) in (int, float, bool) else describe(leaf)
            described.append(row)
            alive.append(owner)
        return leaves, described, alive, tensors

    def _listed(self, args: tuple, kwargs: dict) -> list[Any]:
        if kwargs:
            raise Error(code="run.tree", message="a file without PyTorch's description of the call takes no keywords")
        return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)

    def _tensors_among(self, leaves: list[Any]):
        if self._arguments is None:
            if len(leaves) != len(self._inputs):
                raise Error(code="run.input-count", message=f"{len(leaves)} tensors are given, it takes {len(self._inputs)}",
                            notes=[str(i) for i in self._inputs])
            return zip(leaves, self._inputs)
        tensors = []
        for leaf, argument in zip(leaves, self._arguments):
            if argument.tensor is None:
                self._same_literal(leaf, argument)
            else:
                tensors.append(leaf)
        return zip(tensors, self._inputs)

    @staticmethod
    def _same_literal(leaf: Any, argument: _core.Argument) -> None:
        literal = argument.literal
        if literal is None and isinstance(leaf, str):
            return  # ExecuTorch's files have no texts
        if leaf is not literal and (type(leaf) is not type(literal) or leaf != literal):
            raise Error(code="run.literal", message=f"{leaf!r} is given where the program was exported with {literal!r}",
                        help="what is no tensor is fixed when a program is exported: export it anew with this value")

    @property
    def states(self) -> list[_core.TensorInfo]:
        """The buffers that the program writes and keeps from run to run: names as in the module, dtypes, sizes."""
        return self._core.states

    def state_dict(self) -> dict[str, Any]:
        """What the states hold now, as copies: PyTorch's tensors where torch is loaded, else NumPy's arrays.

        Raises:
            Error: session.busy.
        """
        make = maker_for([])
        return {s.name: make(*self._core.state(s.name)) for s in self.states}

    def load_state_dict(self, states: dict[str, Any], strict: bool = True) -> None:
        """Gives the states a new content. A module's `state_dict()` has parameters besides, which are passed over.

        Args:
            states: tensors of PyTorch or NumPy, or objects that speak DLPack, by the names of `states`.
            strict: all states have to be there, as for a module of PyTorch's; False: those that are there get their content,
                the others keep what they hold.

        Raises:
            Error: run.state (a state is missing, or none has that name), run.state-type, session.busy. Nothing has changed
                then.
        """
        known = {s.name: s for s in self.states}
        missing = [name for name in known if name not in states]
        unknown = [name for name in states if name not in known]
        if unknown and (missing or not known):
            raise Error(code="run.state", message=f"the program keeps no state '{unknown[0]}'",
                        help=f"its states are {', '.join(known)}" if known else "it keeps none")
        if strict and missing:
            raise Error(code="run.state", message=f"nothing is given for the state '{missing[0]}'",
                        help=f"give all of {', '.join(known)}; strict=False leaves the others as they are")
        before = self.state_dict()
        try:
            for name in known.keys() & states.keys():
                self._set_state(name, states[name])
        except Exception:
            for name, content in before.items():
                self._set_state(name, content)
            raise

    def _set_state(self, name: str, content: Any) -> None:
        row, owner = describe(content)
        self._core.set_state(name, row)
        del owner  # alive until here

    def reset(self) -> None:
        """The state is again what it was when the session was loaded."""
        self._core.reset()

    def clone(self) -> Session:
        """Another session of the same program, for another thread, in its first state; the weights are shared."""
        copy = Session.__new__(Session)
        copy.__dict__.update(self.__dict__)
        copy._core = self._core.clone()
        return copy

    @property
    def methods(self) -> list[str]:
        """The names of the program's methods, in its order."""
        return self._core.methods

    def method(self, name: str) -> Session:
        """Another method of the program, next to this one: the buffers that the methods keep together are one.

        Raises:
            Error: method.missing.
        """
        core = self._core.method(name)
        return Session(core, *_trees_in_file(core), core.arguments)

    def measure(self, on: bool = True) -> None:
        """Keep the times of the runs that follow, or no longer."""
        self._core.measure(on)

    def profile(self) -> list[OperationTime]:
        """Where the time of the last run went, in the order in which it ran."""
        return [OperationTime(*row) for row in self._core.profile()]

    def __repr__(self) -> str:
        return f"<tosaic.Session on {self.device}: {self.inputs} -> {self.outputs}>"


def session_options(executor: str, method: str, device: str, vulkan_device: str, threads: int, data) -> dict[str, Any]:
    if not -(2**31) <= threads < 2**31:  # what the core has no number for; the rest it refuses itself
        raise Error(code="run.threads", message=f"'threads' is {threads}", help=f"0 (all cores) to {_core.Session.most_threads}")
    return {"executor": executor, "method": method, "device": device, "vulkan_device": vulkan_device, "threads": threads,
            "data": {name: bytes(content) for name, content in (data or {}).items()}}


def load(file: str | os.PathLike[str] | bytes, *, executor: str = "cpu", method: str = "forward", device: str = "auto",
         vulkan_device: str = "", threads: int = 0, data: dict[str, bytes] | None = None) -> Session:
    """Loads a `.pte`, `.bpte` (the program in it), `.tosa`, `.vgf`, `.pt2` (in floats) or graph text, distinguished by content.

    Args:
        file: a path, or the bytes.
        executor: "cpu", or "interp", the reference interpreter.
        method: of a `.pte`.
        device: "auto", "cpu", "vulkan" (by compute shaders), "vulkan-ml" (VGF, by its extensions), "ethos-u" (insist on the simulated NPU), "ethos-u55-128" (on that one).
        vulkan_device: an index or a part of a name; empty: the best.
        threads: 0: all cores. Sessions with as many share one pool.
        data: `.ptd` files by name: what the program keeps outside itself.

    Raises:
        Error: file.*, run.unknown-format, run.device, delegate.*, kernel.*, memory.limit.
    """
    options = session_options(executor, method, device, vulkan_device, threads, data)
    if isinstance(file, (str, os.PathLike)):
        core, said = _core.Session.open(os.fspath(file), options)
    else:
        core, said = _core.Session.from_bytes(bytes(file), "program", options)
    tell(said)
    return Session(core, *_trees_in_file(core), core.arguments)


def _trees_in_file(core: _core.Session) -> tuple[Call | None, Tree | None]:
    """How a .pte says that it is called, and what it returns, as far as these are tuples, lists and dicts."""
    taken, given = (Tree(text) if text.startswith("[") else None for text in (core.input_tree, core.output_tree))
    told = taken and not taken.foreign and taken.leaves == len(core.arguments)
    call = Call(taken, [a.name for a in core.arguments]) if told else None
    return call, given if given and not given.foreign and given.leaves <= len(core.outputs) else None
