# SPDX-License-Identifier: Apache-2.0
"""Which of ExecuTorch's tests run (every SAMPLE-th, the SEED-th of them), and which of these may fail, and why: a file of
lines PATTERN  REASON (two spaces between), a pattern being a shell glob of a test's name below the suite's folder."""
import fnmatch
import os
import zlib

import pytest


def _left(file):
    lines = (line.split("  ", 1) for line in file.read_text().splitlines() if line and not line.startswith("#"))
    return [(pattern, reason.strip()) for pattern, reason in lines]


def choose(config, items, folder, left):
    every, seed = int(os.environ.get("SAMPLE") or 1), int(os.environ.get("SEED") or 0)
    names = {item: "::".join([str(item.path).split(folder)[-1], *item.nodeid.split("::")[1:]]) for item in items}
    chosen = [i for i in items if zlib.crc32(names[i].encode()) % every == seed % every]
    config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
    items[:] = chosen
    for item in items:
        for pattern, reason in _left(left):
            if fnmatch.fnmatch(names[item], pattern):
                item.add_marker(pytest.mark.xfail(reason=reason))
