# SPDX-License-Identifier: Apache-2.0
"""Packages of PyPI that hold trained weights or pictures, pinned in requirements.txt. Each is unpacked into a folder of its
own under build/accuracy, without dependencies, when it is first asked for.

    python test/accuracy/packages.py [NAME ...]        # all, or these, now
"""
import importlib
import pathlib
import re
import shutil
import subprocess
import sys
import types

import filelock

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build/accuracy"
PINNED = dict(re.findall(r"^([\w-]+)==(\S+)$", (HERE / "requirements.txt").read_text(), re.M))


class Missing(RuntimeError):
    """A package could not be installed."""


def package(name):
    """The folder in which it lies."""
    pinned = f"{name}=={PINNED[name]}"
    folder = BUILD / "packages" / pinned
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if not folder.exists():
            new = folder.with_name(f"{pinned}.new")
            shutil.rmtree(new, ignore_errors=True)
            done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--only-binary=:all:",
                                   "--disable-pip-version-check", "--target", new, pinned], capture_output=True, text=True)
            if done.returncode:
                raise Missing(f"{pinned} could not be installed: {done.stderr.strip()[-300:]}")
            new.rename(folder)
    return folder


def importable(name):
    """As `package`, and its modules can be imported."""
    folder = str(package(name))
    if folder not in sys.path:
        sys.path.append(folder)
    return pathlib.Path(folder)


def module(name, inside, **attributes):
    """The module `inside` of a package whose own first lines import what is not there. `attributes` stand for what they give."""
    first = inside.split(".")[0]
    if first not in sys.modules:
        sys.modules[first] = types.ModuleType(first)
        sys.modules[first].__path__ = [str(package(name) / first)]
        vars(sys.modules[first]).update(attributes)
    return importlib.import_module(inside)


if __name__ == "__main__":
    for asked in sys.argv[1:] or PINNED:
        print(package(asked))
