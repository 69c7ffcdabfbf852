# SPDX-License-Identifier: Apache-2.0
"""A program on a whole data set: what `Artifact.evaluate` gives."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._calibration import _Samples
from ._errors import CompileWarning, Error, tell
from ._program import Program
from ._progress import bar_for
from ._tensors import Described, describe
from ._text import preformatted

if TYPE_CHECKING:
    import pandas

    from ._session import Session


class Evaluation:
    """A program on a data set, next to its floats. It prints as a table.

    Attributes:
        samples, skipped: how many were run, and how many could not be read.
        top1, top5: percent of the labels that the program says, first or among the first five; None: there were no labels.
        top1_in_floats, top5_in_floats: the same of the program in floats; None: it was not run.
        agreement: percent of rows where both choose the same; None without floats.
        outputs: one dict per output, with floats: name, type, snr_db (None: infinite, `exact` says that all is equal) or, of
            integers, equal_share.
        confusion: one dict for each pair of label and answer that came up: label, said, times, times_in_floats; the most
            frequent mistakes first.
        worst: the samples that are farthest from floats: sample, name, snr_db, label, said, floats_said.
        metric, metric_in_floats: the mean of what the given metric says; None: none was given.
        samples_per_second, workers: of all samples, floats included, and how many ran at once.
        run_seconds, floats_run_seconds: the median of one run.
    """

    samples: int
    skipped: int
    agreement: float | None
    outputs: list[dict[str, Any]]
    confusion: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    samples_per_second: float
    workers: int
    run_seconds: float
    floats_run_seconds: float
    metric: float | None
    metric_in_floats: float | None

    def __init__(self, core: _core.Evaluated, skipped: int, metric: float | None, metric_in_floats: float | None) -> None:
        self._core = core
        content = json.loads(core.json())
        content["skipped"] += skipped
        right, in_floats = content.pop("right"), content.pop("right_in_floats")
        self._content = content
        self.__dict__.update(content)
        self.top1, self.top5 = (right or {}).get("top1"), (right or {}).get("top5")
        self.top1_in_floats, self.top5_in_floats = (in_floats or {}).get("top1"), (in_floats or {}).get("top5")
        self.metric, self.metric_in_floats = metric, metric_in_floats

    def text(self) -> str:
        """The table, as `tosaic evaluate` prints it."""
        text = self._core.text()
        if self.metric is not None:
            floats = "" if self.metric_in_floats is None else f"   {self.metric_in_floats:>10.6g}"
            text += f"  {'metric':<10} {self.metric:>10.6g}{floats}\n"
        return text

    def json(self) -> str:
        """All of it, as `tosaic evaluate --json` prints it."""
        return self._core.json()

    def confusion_matrix(self) -> Any:
        """How often (row: the label) was taken for (column: what the program says), an int64 array of classes x classes."""
        import numpy

        size = 1 + max((max(c["label"], c["said"]) for c in self.confusion), default=-1)
        matrix = numpy.zeros((size, size), numpy.int64)
        for c in self.confusion:
            if c["said"] >= 0:
                matrix[c["label"], c["said"]] = c["times"]
        return matrix

    def to_pandas(self) -> pandas.DataFrame:
        """The samples that are farthest from floats, a row each."""
        import pandas

        return pandas.DataFrame(self.worst)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return preformatted(self.text())


def evaluate(session: Session, floats: Session | None, program: Program, dataset: Any, metric: Callable[..., Any] | None,
             labels: Any, workers: int, limit: int, worst: int, progress: bool | None) -> Evaluation:
    """`Artifact.evaluate`, of sessions with one thread each."""
    scores: dict[int, tuple[float, float | None]] = {}
    known_labels: dict[int, Any] = {}
    source = None if isinstance(dataset, (str, os.PathLike)) else _Source(dataset, labels, program, known_labels)

    def each(sample: int, outputs: list[Any], in_floats: list[Any]) -> None:
        label = known_labels.pop(sample, None)
        own = _score(metric, session._returned(outputs), label)
        scores[sample] = own, _score(metric, floats._returned(in_floats), label) if floats is not None else None

    with bar_for(progress) as bar:
        core, said = _core.evaluate(
            session._core, floats._core if floats else None, os.fspath(dataset) if source is None else iter(source),
            os.fspath(labels) if source is None and labels is not None else "", source.expected if source else 0, workers,
            limit, worst, bar, each if metric else None, program.name, f"{program.name} in floats" if floats else "")
    tell(said, stacklevel=4)
    for line in source.said if source else []:
        warnings.warn(CompileWarning(f"warning[evaluate.skipped]: {line}"), stacklevel=3)
    own = _mean([scores[i][0] for i in sorted(scores)])
    in_floats = _mean([score for i in sorted(scores) if (score := scores[i][1]) is not None])
    return Evaluation(core, len(source.said) if source else 0, own, in_floats)


def _score(metric: Any, outputs: Any, label: Any) -> float:
    score = metric(outputs, label) if label is not None else metric(outputs)
    try:
        return float(score)
    except (TypeError, ValueError):
        raise Error(code="evaluate.metric", message=f"the metric gave {score!r}, which is no number",
                    help="metric(outputs, label) gives a number for one sample; the mean over all is told") from None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


class _Source:
    """A data set's samples as the core takes them. An item is a sample, or (sample, label); one that cannot be had of a
    data set with indices is left out, and said."""

    def __init__(self, dataset: Any, labels: Any, program: Program, known_labels: dict[int, Any]) -> None:
        if not isinstance(dataset, Iterable) and not _has_indices(dataset):
            raise Error(code="evaluate.data", message=f"a {type(dataset).__name__} is no data set",
                        help="give the path of a .npz or of a folder, or an iterable of samples or of (sample, label)")
        self.dataset, self.program, self.known_labels = dataset, program, known_labels
        self.labels = iter(labels) if labels is not None else None
        self.samples = _Samples(program, program.methods[0])
        self.said: list[str] = []
        self.expected = len(dataset) if hasattr(dataset, "__len__") else 0

    def __iter__(self) -> Iterator[tuple[list[Any], list[Described], list[int], str]]:
        number = 0
        for name, item in self._items():
            inputs, label = self._label_of(item)
            try:
                calls = list(self.samples.of([inputs]))
            except Error as why:
                raise Error(code="evaluate.data", message=f"{name}: {why}") from None
            labels = _integers(label)
            if labels and len(labels) % len(calls):
                raise Error(code="evaluate.labels", message=f"{name} has {len(labels)} labels for {len(calls)} samples",
                            help="give one to each sample, or one to each row of its first output")
            each = len(labels) // len(calls)
            for at, (owners, rows) in enumerate(calls):
                if label is not None:
                    own = labels[at * each:(at + 1) * each]
                    self.known_labels[number] = label if not own else own[0] if each == 1 else own
                dense = [_dense(_in_a_batch(row, info), owner) for row, info, owner in zip(rows, self.samples.tensors, owners)]
                yield ([o for _, o in dense], [r for r, _ in dense], labels[at * each:(at + 1) * each],
                       name if len(calls) == 1 else f"{name}[{at}]")
                number += 1

    def _items(self) -> Iterator[tuple[str, Any]]:
        if not _has_indices(self.dataset):
            for at, item in enumerate(self.dataset):
                yield f"#{at}", item
            return
        files = getattr(self.dataset, "samples", None)  # of torchvision's ImageFolder: (path, class)
        for at in range(len(self.dataset)):
            name = f"#{at}"
            if isinstance(files, list) and at < len(files) and isinstance(files[at], tuple):
                name = os.fspath(files[at][0])
            try:
                item = self.dataset[at]
            except Exception as why:  # whatever a user's data set raises for one broken file: the others count
                self.said.append(f"{name} is left out: {why}")
                if self.labels is not None:
                    next(self.labels, None)
                continue
            yield name, item

    def _label_of(self, item: Any) -> tuple[Any, Any]:
        if self.labels is not None:
            label = next(self.labels, None)
            if label is None:
                raise Error(code="evaluate.labels", message="there are fewer labels than samples",
                            help="give one to each sample")
            return item, label
        paired = isinstance(item, (tuple, list)) and len(item) == 2 and not isinstance(item[1], Mapping)
        if paired and (len(self.samples.tensors) == 1 or isinstance(item[0], (tuple, list, Mapping))):
            return item[0], item[1]
        return item, None


def _has_indices(dataset: Any) -> bool:
    return hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__") and not isinstance(dataset, Mapping)


def _integers(label: Any) -> list[int]:
    """A class, or a list, array or tensor of them; what is none of these is the metric's business."""
    if isinstance(label, (int, list)) or hasattr(label, "reshape"):
        flat = [label] if isinstance(label, int) else label.reshape(-1).tolist() if hasattr(label, "reshape") else label
        if all(hasattr(x, "__index__") and not isinstance(x, float) for x in flat):
            return [operator.index(x) for x in flat]
    return []


def _in_a_batch(row: Described, info: _core.TensorInfo) -> Described:
    """A data set's items often come without the batch of one that the program takes."""
    address, dtype, sizes, strides = row
    if len(sizes) + 1 == len(info.dims) and info.dims[0].lowest <= 1:
        return address, dtype, (1, *sizes), None if strides is None else (0, *strides)
    return row


def _dense(row: Described, owner: Any) -> tuple[Described, Any]:
    address, dtype, sizes, strides = row
    dense, step = True, 1
    for size, stride in zip(reversed(sizes), reversed(strides or ())):
        dense = dense and (size == 1 or stride == step)
        step *= size
    if dense:
        return (address, dtype, sizes, None), owner
    import numpy

    if type(owner).__module__.startswith("torch"):
        owner = owner.contiguous()
    else:
        owner = numpy.ascontiguousarray(owner)
    return describe(owner)
