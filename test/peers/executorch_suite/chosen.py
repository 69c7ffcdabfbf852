# SPDX-License-Identifier: Apache-2.0
"""Which of ExecuTorch's tests run (every SAMPLE-th, the SEED-th of them, and of each folder at least LEAST that lower
something), and which of these may fail, and why: a file of lines PATTERN  REASON (two spaces between), a pattern being a
shell glob of a test's name below the suite's folder.

    chosen.py SEED FOLDER...        # for each folder a file of it that lowers something and imports nothing that is missing

Collecting a folder takes longer than its tests."""
import ast
import collections
import fnmatch
import importlib.util
import os
import pathlib
import re
import sys
import zlib

import pytest

LOWERS = re.compile(r"_(tosa|vgf|u55|u85)_")


def _left(file):
    lines = (line.split("  ", 1) for line in file.read_text().splitlines() if line and not line.startswith("#"))
    return [(pattern, reason.strip()) for pattern, reason in lines]


def _sample(names):
    every, seed, least = (int(os.environ.get(x) or default) for x, default in (("SAMPLE", 1), ("SEED", 0), ("LEAST", 0)))
    folders = collections.defaultdict(list)
    for item, name in names.items():
        turn = (zlib.crc32(name.encode()) - seed) % every
        folders[name.split("::")[0].split("/")[0]].append((not LOWERS.search(name), turn, name, item))
    return {item for ranked in folders.values()
            for place, (_, turn, _, item) in enumerate(sorted(ranked, key=lambda r: r[:3])) if turn == 0 or place < least}


def choose(config, items, folder, *left):
    names = {item: "::".join([str(item.path).split(folder)[-1], *item.nodeid.split("::")[1:]]) for item in items}
    chosen = _sample(names)
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
    items[:] = [i for i in items if i in chosen]
    for item in items:
        for pattern, reason in (row for file in left for row in _left(file)):
            if fnmatch.fnmatch(names[item], pattern):
                item.add_marker(pytest.mark.xfail(reason=reason), append=False)  # before one of theirs that is strict


def skip_if_incomplete(report, call):
    """What a module of the suite imports (transformers, torchvision) and this environment has not is no failure of ours."""
    cause = call.excinfo and call.excinfo.value.__cause__
    if isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] not in ("tosaic", "executorch"):
        report.outcome, report.longrepr = "skipped", (str(report.nodeid), None, f"Skipped: {cause}")


def _imported(text):
    for node in ast.walk(ast.parse(text)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
        yield from (name.split(".")[0] for name in names if name and not getattr(node, "level", 0))


def _file_of(folder, seed):
    for file in sorted(folder.rglob("test_*.py"), key=lambda f: zlib.crc32(f"{seed} {f.name}".encode())):
        text = file.read_text()
        if LOWERS.search(text) and "Pipeline" in text and all(importlib.util.find_spec(name) for name in _imported(text)):
            return file
    sys.exit(f"no test in {folder} can run")


if __name__ == "__main__":
    suite = pathlib.Path(importlib.util.find_spec("executorch").submodule_search_locations[0]) / "backends/arm/test"
    print(*(_file_of(suite / folder, f"{sys.argv[1]} {place}") for place, folder in enumerate(sys.argv[2:])))
