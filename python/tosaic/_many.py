# SPDX-License-Identifier: Apache-2.0
"""Many calls of one program, several at once: what `Artifact.run_many` and `Session.run_many` give."""

from __future__ import annotations

import collections
import concurrent.futures
import queue
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _core
from ._calibration import _call_in
from ._errors import Error

if TYPE_CHECKING:
    from ._session import Session


def run_many(session: Session, calls: Iterable[Any], workers: int) -> Iterator[Any]:
    """The results, in the order of the calls. `calls` is read at most 2 * workers ahead of what was taken."""
    if not 0 <= workers <= _core.Session.most_threads:
        raise Error(code="run.threads", message=f"'workers' is {workers}", help=f"0 (all cores) to {_core.Session.most_threads}")
    return _results(session, calls, workers or session._core.useful_clones)


def _results(session: Session, calls: Iterable[Any], workers: int) -> Iterator[Any]:
    idle: queue.SimpleQueue[Session] = queue.SimpleQueue()
    for _ in range(workers):
        idle.put(session.clone())

    def run(args: tuple, kwargs: dict[str, Any]) -> Any:
        clone = idle.get()
        try:
            if clone.states:
                clone.reset()
            return clone.run(*args, **kwargs)
        finally:
            idle.put(clone)

    pending: collections.deque[tuple[int, concurrent.futures.Future]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(workers, "tosaic.run_many") as pool:
        try:
            for number, call in enumerate(calls):
                args, kwargs = _call_in(call, session._call)
                pending.append((number, pool.submit(run, tuple(args), kwargs)))
                if len(pending) > 2 * workers:
                    yield _result(*pending.popleft())
            while pending:
                yield _result(*pending.popleft())
        finally:  # also where nobody wants the rest
            for _, later in pending:
                later.cancel()


def _result(number: int, running: concurrent.futures.Future) -> Any:
    try:
        return running.result()
    except Error as why:
        told = Error(why.diagnostic, code=why.code, help=why.help)
        told.args = (f"call {number}: {why}",)
        raise told from why
