# SPDX-License-Identifier: Apache-2.0
"""compile, compare, explain, supports, plan, tune: the questions one can ask."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _core
from ._artifact import Artifact, Explanation
from ._calibration import samples_for
from ._comparison import Comparison
from ._compile_options import CompileOptions
from ._errors import CompileWarning, Error, tell
from ._options import options_of, options_page
from ._program import Program
from ._progress import bar_for
from ._tuning import Tuning

if TYPE_CHECKING:
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack

_Question = TypeVar("_Question", bound=Callable[..., Any])


def _question(question: _Question) -> _Question:
    """The arguments were once (model, target, example_inputs), which is taken with a warning. No example is a text. What is
    no option may be meant for one of the arguments, which the core does not know of."""
    @functools.wraps(question)
    def asked(model: Any, *args: Any, **keywords: Any) -> Any:
        if args and isinstance(args[0], str) and "target" not in keywords:
            name = f"tosaic.{question.__name__}"
            warnings.warn(f"{name}(model, target, example_inputs) is the old order of arguments; it is {name}(model, "
                          "example_inputs, target), and target=... in any order", DeprecationWarning, stacklevel=2)
            target, *rest = args
            keywords["target"] = target
            args = tuple(rest)
        try:
            return question(model, *args, **keywords)
        except Error as e:
            if e.code != "option.unknown" or e.diagnostic is None:
                raise
            own = [p.name for p in inspect.signature(question).parameters.values() if p.kind is p.KEYWORD_ONLY]
            raise Error(code=e.code, message=e.diagnostic.message, notes=e.diagnostic.notes,
                        help=f"{e.help}\n  help: tosaic.{question.__name__} itself takes {', '.join(own)}") from None

    return cast(_Question, asked)


def _find_tools() -> None:
    """Vela and Arm's converter are installed next to the interpreter, which need not be on PATH (a notebook's kernel)."""
    folder = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", "")
    if folder not in path.split(os.pathsep):
        os.environ["PATH"] = path + os.pathsep + folder if path else folder


def _program_of(model: Any, example_inputs: Any, example_kwargs: dict[str, Any] | None, dynamic_shapes: Any,
                options: CompileOptions) -> Program:
    """In the layout that the options ask for: so are samples."""
    program = Program.of(model, example_inputs, example_kwargs, dynamic_shapes, stacklevel=5)
    return program.with_input_layout(options.get("input_layout"))


@_question
def compile(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, calibration: Any = None,
            example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None, progress: bool | None = None,
            **options: Unpack[CompileOptions]) -> Artifact:
    """Compiles a PyTorch model for a target, in memory.

    Args:
        model: a `torch.nn.Module` (exported in inference mode with the example inputs), an `ExportedProgram`, the path of a
            `.pt2`, its bytes, or a `Program`. A dict of the last four: the methods of one file, by name
            (`{"prefill": ep1, "decode": ep2}`); they share weights, and buffers of equal names are one.
        example_inputs: a module's: the tuple of arguments of a call, the only argument, or a dict of keyword arguments (a
            tokenizer's). NumPy's arrays are tensors. Their dtypes and sizes are the program's, which it insists on.
        example_kwargs: a module's: the call's keyword arguments.
        dynamic_shapes: a module's, as `torch.export.export` takes them: sizes that may vary, with upper bounds.
        target: a name of `tosaic.targets()`: "tosa-int", "tosa-fp", "vgf", "ethos-u55-128", ...
        calibration: for integer targets, and `weights="int4"` of others: an iterable of calls as the module is called,
            each a tensor, a tuple of arguments, a dict of arguments by name, or both, `((x,), {"mask": m})` (batches of a loader are split into calls of the
            program's size); or a path, as the command line takes it: a `.npz` with one array per input,
            samples stacked along a new first axis, a `.npy`, or a folder of these. None: the example inputs stored in the
            program, with a warning: they are often random. Of several methods a dict of these by the methods' names; what it leaves out takes the stored inputs.
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
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    with bar_for(progress) as bar:
        core, said = _core.compile(program._core, target, options_of(options), bar, samples_for(calibration, program))
    tell(said, stacklevel=4)
    for d in said:  # a note to those who chose the file; here the example may be there for its sizes alone
        if d.code == "calibrate.stored-samples" and calibration is None:
            warnings.warn(CompileWarning(f"warning[{d.code}]: {d.message}: values beyond theirs saturate\n"
                                         "  help: calibration=[...] takes typical inputs, as the module is called; "
                                         "calibration=[example_inputs] says that these are", d), stacklevel=3)
            break
    return Artifact(core, program, functools.partial(_compared, program, target, options_of(options), calibration))


def _integers(labels: Any) -> list[int]:
    """A list, an array or a tensor of any shape, its elements in order."""
    if labels is None:
        return []
    flat = labels.reshape(-1).tolist() if hasattr(labels, "reshape") else list(labels)
    if any(isinstance(label, float) or not hasattr(label, "__index__") for label in flat):
        raise Error(code="compare.labels", message="the labels are no integers",
                    help="labels=[3, 1, ...]: a class for each sample")
    return [operator.index(label) for label in flat]


def _kept(calibration: Any) -> Any:
    return list(calibration) if isinstance(calibration, Iterator) else calibration


def _compared(program: Program, target: str, options: dict[str, list[str]], calibration: Any, samples: Any,
              labels: Any, progress: bool | None, on_device: bool = False, stacklevel: int = 4) -> Comparison:
    if isinstance(calibration, Iterator):
        raise Error(code="compare.calibration", message="the calibration was an iterator, which is used up",
                    help="give compile a list: calibration=list(...); or tosaic.compare(model, ..., calibration=...)")
    with bar_for(progress) as bar:
        core, said = _core.compare(program._core, target, options, bar, samples_for(calibration, program),
                                   samples_for(samples, program), _integers(labels), on_device)
    tell(said, stacklevel=stacklevel)
    return Comparison(core)


@_question
def compare(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, calibration: Any = None, samples: Any = None,
            labels: Any = None, on_device: bool = False, example_kwargs: dict[str, Any] | None = None,
            dynamic_shapes: Any = None, progress: bool | None = None,
            **options: Unpack[CompileOptions]) -> Comparison:
    """Where the program loses accuracy in integers or 16-bit floats, layer by layer, and which option helps. Arguments as
    of `compile`.

    Args:
        samples: what to compare on, in the form of `calibration`; None: the first 8 samples of the calibration.
        labels: classes of the samples, integers: which element along the last axis of the first output should be the
            largest. One for each sample, or for each row of each.
        on_device: run a program that stays floats on this machine's device as well, and compare its outputs.

    Raises:
        Error: compare.*, program.*, target.unknown, option.*, calibrate.*, quantise.*.
    """
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    return _compared(program, target, options_of(options), _kept(calibration), samples, labels, progress, on_device)


@_question
def tune(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, budget: str = "", calibration: Any = None,
         samples: Any = None, labels: Any = None, example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None,
         progress: bool | None = None, **options: Unpack[CompileOptions]) -> Tuning:
    """Which calls of an int8 program get 16 bits, so that it is as accurate as asked for, or no more expensive. Found by
    measuring. Arguments as of `compile`.

    Args:
        budget: "snr>=30": so many dB of signal to noise in the worst output, as cheaply as possible. "top1>=97.5",
            "top1>=float-0.5": so many percent of the labels right, or so many points below floats. "cycles<=1.15x": as
            accurate as possible at that cost, against int8 (Ethos-U: Vela's cycles; other targets: "bytes<=1.15x" of
            activations). Empty: nothing is chosen, and the table shows what there is.
        samples: what to measure on, in the form of `calibration`; None: 16 samples from all over the calibration (of a
            program with states the first).
        labels: classes of the samples, integers: which element along the last axis of the first output should be the
            largest. One for each sample, or for each row of each.

    Raises:
        Error: tune.*, and what `compare` raises.
    """
    _find_tools()
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    with bar_for(progress) as bar:
        core, said = _core.tune(program._core, target, options_of(options), budget, bar,
                                samples_for(_kept(calibration), program), samples_for(samples, program), _integers(labels))
    tell(said, stacklevel=4)
    return Tuning(core)


@_question
def explain(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, example_kwargs: dict[str, Any] | None = None,
            dynamic_shapes: Any = None, **options: Unpack[CompileOptions]) -> Explanation:
    """Which nodes the target takes, and why not the others. Arguments as of `compile`; calibrated with the program's own
    examples or, where it has none, with made-up ones.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    core, _ = _core.explain(program._core, target, options_of(options))
    return Explanation(core, program)


@_question
def supports(model: Any, example_inputs: Any = None, target: str = "tosa-int", *,
             example_kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None,
             **options: Unpack[CompileOptions]) -> list[_core.NodeVerdict]:
    """A verdict per node of the exported graph, in milliseconds: nothing is calibrated or compiled. A `Program` answers for
    a second target faster than for the first. Arguments as of `compile`.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    return _core.supports(program._core, target, options_of(options))


@_question
def plan(model: Any, example_inputs: Any = None, target: str = "tosa-int", *, example_kwargs: dict[str, Any] | None = None,
         dynamic_shapes: Any = None, **options: Unpack[CompileOptions]) -> str:
    """The quantisation plan as text: what becomes integers and of which width, who shares a scale. Edited or not, the
    option `plan` of `compile` takes a file of it. Arguments as of `compile`.

    Raises:
        Error: program.*, target.unknown, option.*, plan.*.
    """
    program = _program_of(model, example_inputs, example_kwargs, dynamic_shapes, options)
    return _core.plan(program._core, target, options_of(options))[0]


if compile.__doc__ is not None:  # python -OO strips it
    # Indented before Python 3.13, not since.
    compile.__doc__ = compile.__doc__.partition("OPTIONS\n")[0].rstrip(" ") + options_page()
