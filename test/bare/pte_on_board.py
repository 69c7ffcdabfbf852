# SPDX-License-Identifier: Apache-2.0
"""What the tests here do with tosaic: run it, build a firmware with it, make an input for a program."""
import pathlib
import re
import subprocess

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def one_input(folder, tosaic):
    """An input of the program's own size."""
    text = run(tosaic, "inspect", folder / "net.pte")
    shape, dtype = re.search(r"input +v\d+ ((?:\d+x)*)(\w+)", text).groups()
    sizes = [int(size) for size in shape.split("x") if size]
    values = numpy.random.default_rng(7).uniform(-1, 1, sizes)
    kind = {"f32": numpy.float32, "i8": numpy.int8, "i32": numpy.int32, "i64": numpy.int64}[dtype]
    numpy.save(folder / "x.npy", values.astype(kind) if dtype == "f32" else (values * 100).astype(kind))
    return folder / "x.npy"


def build(tosaic, folder, *options, status=0):
    return run(tosaic, "device", "build", folder / "net.pte", "--board", "mps3-an547", "-o", folder / "net.elf", *options,
               status=status)
