# SPDX-License-Identifier: Apache-2.0
"""compile, explain, supports, plan: the questions one can ask."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from ._artifact import Artifact, Explanation
from ._errors import Error, tell
from ._options import options_of, options_page
from ._program import Program
from ._progress import bar_for
from ._tensors import describe, number


def _calibration(given: Any, program: Program, method: str):
    """An iterator of (objects to keep, descriptions), one sample each."""
    call, arguments = program._call(method)
    tensors = [a.tensor for a in arguments if a.tensor is not None]

    def leaves_of(batch: Any) -> list[Any]:
        args, kwargs = ((), dict(batch)) if isinstance(batch, Mapping) else (batch, {})
        if not isinstance(args, (tuple, list)):
            args = (args,)
        try:
            return call.flatten(tuple(args), kwargs) if call else list(args)
        except Error as why:
            raise Error(code="calibrate.structure", message=f"a sample does not have the form of a call: {why}",
                        help="give an iterable of calls: each a tensor (the only input), a tuple of arguments or a dict of "
                             "keyword arguments; from a loader of (input, label): (x for x, _ in loader)") from None

    def samples():
        for place, batch in enumerate(given):
            leaves = leaves_of(batch)
            if call is not None:
                leaves = [x for x, a in zip(leaves, arguments) if a.tensor is not None]
            pairs = []
            for x, info in itertools.zip_longest(leaves, tensors):
                try:
                    is_number = type(x) in (int, float, bool) and info is not None
                    pairs.append(number(x, info.dtype, len(info.dims)) if is_number else describe(x))
                except Error as why:
                    raise Error(code="calibrate.sample", message=f"sample {place}: {why}") from None
            yield [owner for _, owner in pairs], [row for row, _ in pairs]

    return samples()


def _samples_of(calibration: Any, program: Program, method: str):
    if isinstance(calibration, (str, os.PathLike)):
        return os.fspath(calibration)  # the core reads files
    if not isinstance(calibration, Iterable) or hasattr(calibration, "__dlpack__"):
        what = "one tensor" if hasattr(calibration, "__dlpack__") else f"a {type(calibration).__name__}"
        raise Error(code="calibrate.structure", message=f"calibration is {what}, not an iterable of samples",
                    help="give a list: calibration=[x]")
    return _calibration(calibration, program, method)


def _samples_for(calibration: Any, program: Program) -> dict[str, Any]:
    """By the methods' names; what the core is to refuse goes to it as it is."""
    if calibration is None:
        return {}
    if not isinstance(calibration, Mapping):
        only = len(program.methods) == 1
        return {"": _samples_of(calibration, program, program.methods[0]) if only else iter(())}
    return {str(name): _samples_of(given, program, name) if name in program.methods else iter(())
            for name, given in calibration.items() if given is not None}


def _find_tools() -> None:
    """Vela and Arm's converter are installed beside the interpreter, which need not be on PATH (a notebook's kernel)."""
    beside = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", "")
    if beside not in path.split(os.pathsep):
        os.environ["PATH"] = path + os.pathsep + beside if path else beside


def compile(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, calibration: Any = None,
            example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None, progress: bool | None = None,
            **options: Any) -> Artifact:
    """Compiles a PyTorch model for a target, in memory.

    Args:
        model: a `torch.nn.Module` (exported in inference mode with the example inputs), an `ExportedProgram`, the path of a
            `.pt2`, its bytes, or a `Program`. A dict of the last four: the methods of one file, by name
            (`{"prefill": ep1, "decode": ep2}`); they share weights, and buffers of equal names are one.
        example_inputs: a module's: the tuple of arguments of a call, or the only argument. Their dtypes and sizes are the
            program's, which it insists on.
        example_kwargs: a module's: the call's keyword arguments.
        dynamic_shapes: a module's, as `torch.export.export` takes them: sizes that may vary, with upper bounds.
        target: a name of `tosaic.targets()`: "tosa-int", "tosa-fp", "vgf", "ethos-u55-128", ...
        calibration: for integer targets: an iterable of calls as the module is called, each a tensor, a tuple of arguments
            or a dict of keyword arguments; or a path, as the command line takes it: a `.npz` with one array per input,
            samples stacked along a new first axis, a `.npy`, or a folder of these. None: the example inputs stored in the
            program. Of several methods a dict of these by the methods' names; what it leaves out takes the stored inputs.
            All of it is one sequence of runs, method by method, and a buffer that methods share has one scale in all.
        progress: a bar for what takes long; None: where a terminal or a notebook shows it.

    Returns:
        The artifact. Notes and warnings are in `artifact.summary.messages`; warnings are `CompileWarning`s, too.

    Raises:
        Error: program.*, target.unknown, option.*, calibrate.*, quantise.*, target.*, pack.*, vela.*, self-check.*.
        KeyboardInterrupt: Ctrl-C stops it between stages and samples.

    OPTIONS
    """
    _find_tools()
    program = Program.of(model, example_inputs, example_kwargs, dynamic_shapes, stacklevel=3)
    bar = bar_for(progress)
    try:
        core, said = _core.compile(program._core, target, options_of(options), bar, _samples_for(calibration, program))
    finally:
        if bar is not None:
            bar.close()
    tell(said)
    return Artifact(core, program)


def explain(model: Any, target: str = "tosa-int", example_inputs: Any = None, *, example_kwargs: dict[str, Any] | None = None,
            dynamic_shapes: Any = None, **options: Any) -> Explanation:
    """Which nodes the target takes, and why not the others. Arguments as of `compile`; calibrated with the program's own
    examples or, where it has none, with made-up ones.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = Program.of(model, example_inputs, example_kwargs, dynamic_shapes, stacklevel=3)
    core, _ = _core.explain(program._core, target, options_of(options))
    return Explanation(core, program)


def supports(model: Any, target: str = "tosa-int", example_inputs: Any = None, **options: Any) -> list[_core.NodeVerdict]:
    """A verdict per node of the exported graph, in milliseconds: nothing is calibrated or compiled. A `Program` answers for
    a second target faster than for the first. Arguments as of `compile`.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = Program.of(model, example_inputs, stacklevel=3)
    return _core.supports(program._core, target, options_of(options))


def plan(model: Any, target: str = "tosa-int", example_inputs: Any = None, **options: Any) -> str:
    """The quantisation plan as text: what becomes integers and of which width, who shares a scale. Edited or not, the
    option `plan` of `compile` takes a file of it. Arguments as of `compile`.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = Program.of(model, example_inputs, stacklevel=3)
    return _core.plan(program._core, target, options_of(options))[0]


if compile.__doc__ is not None:  # python -OO strips it
    compile.__doc__ = compile.__doc__.replace("    OPTIONS\n    ", options_page())
