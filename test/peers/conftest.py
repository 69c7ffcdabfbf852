# SPDX-License-Identifier: Apache-2.0
"""The models under test, built on demand into build/models, and their programs, compiled once per session."""
import dataclasses
import functools
import os
import pathlib
import subprocess
import sys

import filelock
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "build/models"
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela
sys.path[:0] = [str(ROOT / "test/models"), str(ROOT / "test")]
import executorch_programs  # noqa: E402
from model_names import ALL, QUICK  # noqa: E402

# What is compiled: the kind of program, the target, and whether calibration samples are needed.
VARIANTS = [("raw", "tosa-fp"), ("decomposed", "tosa-fp"), ("raw", "tosa-int"), ("decomposed", "tosa-int"),
            ("pt2e", "tosa-int")]
SUFFIX = {"raw": "", "decomposed": "_decomposed", "pt2e": "_pt2e"}


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        names = ALL if metafunc.config.getoption("--all-models") else QUICK
        metafunc.parametrize("model", names, indirect=True, scope="session")


@dataclasses.dataclass(frozen=True)
class Model:
    name: str

    def program(self, kind):
        return MODELS / f"{self.name}{SUFFIX[kind]}.pt2"

    @property
    def samples(self):
        return MODELS / f"{self.name}_samples.npz"

    @functools.cached_property
    def expected(self):
        return dict(np.load(MODELS / f"{self.name}_expected.npz"))

    def arrays(self, kind):
        """What is stored under "kind_0", "kind_1" ...: for each example, the list of its arrays."""
        columns = [self.expected[f"{kind}_{i}"] for i in range(len(self.expected)) if f"{kind}_{i}" in self.expected]
        return [list(row) for row in zip(*columns)]


class Tool:
    """The command line tool, with failures that show what it said."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"tosaic {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}"
        if arguments[0] != "compile":
            return done.stdout
        self.said = done.stderr
        executorch_programs.check_written(arguments, self.path, done.stderr)
        return done.stdout

    def run(self, program, inputs, folder, *options):
        """The outputs of `program` on the arrays `inputs`."""
        folder = pathlib.Path(folder, f"run_{len(list(pathlib.Path(folder).iterdir()))}")
        folder.mkdir()
        files = []
        for i, array in enumerate(inputs):
            np.save(folder / f"input_{i}.npy", array)
            files += ["--input", folder / f"input_{i}.npy"]
        self("run", program, *files, "--output-dir", folder, *options)
        return [np.load(folder / f"output_{i}.npy") for i in range(len(list(folder.glob("output_*.npy"))))]


@pytest.fixture(scope="session")
def tool(tosaic):
    return Tool(tosaic)


def build_model(name):
    MODELS.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(MODELS / f"{name}.lock"):  # tests run in several processes
        if not (MODELS / f"{name}_expected.npz").exists():  # written last; spares the script's slow imports
            done = subprocess.run([sys.executable, ROOT / "test/models/make_models.py", "--output", MODELS,
                                   "--only", name], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
    return Model(name)


@pytest.fixture(scope="session")
def model(request):
    return build_model(request.param)


@pytest.fixture(scope="session")
def compiled(tool, tmp_path_factory):
    """compiled(model, kind, target) -> (the .pte, the .tosa); a failure is remembered, not repeated."""
    @functools.cache
    def attempt(model, kind, target):
        folder = tmp_path_factory.mktemp(f"{model.name}_{kind}_{target}")
        command = ["compile", model.program(kind), "--target", target, "-o", folder / "model.pte",
                   "--emit", f"tosa={folder / 'model.tosa'}", "--require-full-delegation"]
        if target == "tosa-int" and kind != "pt2e":
            command += ["--calibrate", model.samples]
        try:
            tool(*command)
        except AssertionError as failure:
            return None, str(failure)
        return folder / "model.pte", folder / "model.tosa"

    def compile_once(model, kind, target):
        pte, tosa = attempt(model, kind, target)
        assert pte, tosa
        return pte, tosa
    return compile_once


@pytest.fixture(params=VARIANTS, ids=["-".join(v) for v in VARIANTS], scope="session")
def variant(request):
    return request.param
