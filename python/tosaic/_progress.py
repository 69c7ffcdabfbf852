# SPDX-License-Identifier: Apache-2.0
"""A bar for what takes long, where somebody looks: rich where it is installed, else tqdm, else a plain line."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator


def _somebody_looks() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Bar:
    """Called as the core's progress callback: (stage, done, total). Shows itself after half a second."""

    def __init__(self, delay: float = 0.5):
        self._begin, self._delay = time.monotonic(), delay
        self._bar = None
        self._last = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begin < self._delay or done >= total:
                return
            self._bar = _rich(stage, total) or _tqdm(stage, total) or _Plain(stage, total)
        self._bar.update(done - self._last)
        self._last = done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Plain:
    """One line on standard error, written over and in the end wiped."""

    def __init__(self, stage: str, total: int):
        self._stage, self._total, self._done, self._width = stage, total, 0, 0

    def update(self, n: int) -> None:
        self._done += n
        self._write(f"{self._stage}: {self._done} of {self._total}")

    def close(self) -> None:
        self._write("")
        self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _rich(stage: str, total: int):
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None

    class Shown:
        def __init__(self):
            self._progress = Progress(console=Console(stderr=True), transient=True)  # what is printed may go to a file
            self._progress.start()
            self._task = self._progress.add_task(stage, total=total)

        def update(self, n: int) -> None:
            self._progress.advance(self._task, n)

        def close(self) -> None:
            self._progress.stop()

    return Shown()


def _tqdm(stage: str, total: int):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=stage, leave=False)


@contextlib.contextmanager
def bar_for(progress: bool | None) -> Iterator[Bar | None]:
    """`progress`: True: a bar, False: none, None: where somebody looks. It is closed whatever happens."""
    bar = Bar() if progress or (progress is None and _somebody_looks()) else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()
