# SPDX-License-Identifier: Apache-2.0
"""Which chip, which memory mode, which precision? A model compiled for many."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._calibration import samples_for
from ._errors import Error, tell
from ._evaluation import _dense, _Source
from ._options import options_of
from ._program import Program
from ._progress import bar_for
from ._tensors import Described
from ._text import preformatted

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    import pandas


class Sweep:
    """What a model costs and gives on many targets. It prints as a table.

    Attributes:
        rows: one dict per program: target, precision, memory_mode, delegated ("12/12" nodes), delegates, cycles,
            inferences_per_second, sram_bytes, flash_bytes, program_bytes, snr_db (of the worst output against floats; None
            also where it is infinite), right and right_in_floats (percent of the labels), macs_per_cycle, seconds, problem
            (why there is no program, or why it was not run) and best. What is not known is None.
        best: those on the Pareto front: no other is as good in the NPU's size, speed, SRAM and accuracy.
    """

    rows: list[dict[str, Any]]

    def __init__(self, model: str, rows: list[_core.SweepRow]) -> None:
        self._model, self._rows = model, rows
        self.rows = json.loads(self.json())["rows"]

    @property
    def best(self) -> list[dict[str, Any]]:
        """The rows on the Pareto front."""
        return [row for row in self.rows if row["best"]]

    def text(self) -> str:
        """The table, as `tosaic sweep` prints it."""
        return _core.sweep_text(self._model, self._rows)

    def json(self) -> str:
        """All of it, as `tosaic sweep --json` prints it."""
        return _core.sweep_json(self._model, self._rows)

    def csv(self) -> str:
        """The rows for spreadsheets, with a heading."""
        return _core.sweep_csv(self._rows)

    def html(self) -> str:
        """A page of its own, without a network, whose table sorts and filters."""
        return _core.sweep_html(self._model, self._rows)

    def to_pandas(self) -> pandas.DataFrame:
        """A row per program."""
        import pandas

        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return preformatted(self.text())


def sweep(model: Any, example_inputs: Any = None, *, targets: Sequence[str] | str = (), precisions: Sequence[str] | str = (),
          memory_modes: Sequence[str] | str = (), calibration: Any = None, evaluation: Any = None, labels: Any = None,
          limit: int = 100, clock: float | None = None, executor: Executor | None = None, progress: bool | None = None,
          **options: Any) -> Sweep:
    """Compiles a model for many targets, memory modes and precisions, runs each here, and tells what they cost and give.

    Args:
        model, example_inputs: as `tosaic.compile` takes them.
        targets: names, or what they begin with ("ethos-u55"); none: every Ethos-U, cortex-m55 and vulkan.
        precisions: "int8", "int16x8", "int4" (weights), "float", "fp16" (Vulkan), of each target those that it has; none:
            int8, and int16x8 or float.
        memory_modes: of Ethos-U: Vela's names, "own" (the product's usual one) or "all"; none: own.
        calibration: samples for quantisation, as `tosaic.compile` takes them.
        evaluation: a data set to run every program on, as `Artifact.evaluate` takes it; None: the first 8 samples of the
            calibration. labels: of it, where it has none.
        limit: samples of the data set at most; 0: all.
        clock: of the NPU in Hz, for inferences per second; None: Vela's.
        executor: where the programs are compiled and run: any `concurrent.futures.Executor`, such as a
            `ProcessPoolExecutor`, or that of a Dask or Ray cluster; the model and the data go with every program. None: on
            this machine's cores.
        progress: a bar; None: where somebody looks.
        options: of every compilation, as `tosaic.compile` takes them, as far as the target has them.

    Raises:
        Error: target.unknown, sweep.*, program.*, evaluate.data. What goes wrong with one program is its row's `problem`.
    """
    from concurrent.futures import as_completed  # takes its time

    points = _core.sweep_points(_names(targets), _names(precisions), _names(memory_modes), options_of(options))
    program = Program.of(model, example_inputs, stacklevel=3).with_input_layout(options.get("input_layout"))
    data, said = _core.sweep_data(program._core, _samples(calibration, program), _evaluated(evaluation, labels, program),
                                  os.fspath(labels) if isinstance(labels, (str, os.PathLike)) else "", limit)
    tell(said)
    data = _core.run_floats(program._core, data)
    rows: list[Any] = [None] * len(points)
    with bar_for(progress) as bar, _Workers(executor) as workers:
        held = program if executor is None else _file_of(model, program)
        waiting: dict[Future[Any], int] = {workers.submit(_measure, held, point, data): at
                                           for at, point in enumerate(points)}
        for done, future in enumerate(as_completed(waiting), 1):
            rows[waiting[future]] = future.result()
            if bar:
                bar("sweep", done, len(points))
    return Sweep(program.name, _core.sweep_marked(rows, clock or 0))


class _Workers:
    """The given executor, or threads of this process; what has not begun when an exception comes is given up."""

    def __init__(self, executor: Executor | None) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._own = executor is None
        self._executor = executor or ThreadPoolExecutor(os.cpu_count())
        self._futures: list[Future[Any]] = []

    def __enter__(self) -> _Workers:
        return self

    def submit(self, *call: Any) -> Future[Any]:
        self._futures.append(self._executor.submit(*call))
        return self._futures[-1]

    def __exit__(self, *why: Any) -> None:
        for future in self._futures:
            future.cancel()
        if self._own:
            self._executor.shutdown()


def _measure(model: Program | bytes, point: _core.SweepPoint, data: _core.SweepData) -> _core.SweepRow:
    """One program, in whatever process this is."""
    from ._compile import _find_tools

    _find_tools()
    program = model if isinstance(model, Program) else _program_in(model)
    return _core.measure_point(program._core, point, data)


@functools.lru_cache(maxsize=2)
def _program_in(content: bytes) -> Program:
    return Program.of(content)


def _names(given: Sequence[str] | str) -> list[str]:
    return given.split(",") if isinstance(given, str) and given else list(given)


def _file_of(model: Any, program: Program) -> bytes:
    """The program as a file's content, for another process."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        with open(model, "rb") as file:
            return file.read()
    if program._exported is None:
        raise Error(code="sweep.program", message="a program that was read before cannot be sent to an executor",
                    help="give the path, the bytes, the module or the ExportedProgram that it was made of")
    import torch

    content = io.BytesIO()
    torch.export.save(program._exported, content)
    return content.getvalue()


def _samples(calibration: Any, program: Program) -> Any:
    """As the core takes them: an iterator, a path, or None for those stored in the program."""
    for given in samples_for(calibration, program).values():
        return given if isinstance(given, str) else ((dense[1], dense[0]) for dense in map(_dense_sample, given))
    return None


def _dense_sample(sample: tuple[list[Any], list[Described]]) -> tuple[list[Described], list[Any]]:
    rows = [_dense(row, owner) for owner, row in zip(*sample)]
    return [row for row, _ in rows], [owner for _, owner in rows]


def _evaluated(evaluation: Any, labels: Any, program: Program) -> Any:
    if evaluation is None or isinstance(evaluation, (str, os.PathLike)):
        return None if evaluation is None else os.fspath(evaluation)
    return iter(_Source(evaluation, labels, program, {}))
