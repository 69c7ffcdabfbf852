# SPDX-License-Identifier: Apache-2.0
"""The plug-in, loaded once per process, and programs in both runtimes."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "python/tosaic/executorch/runtime.py"
# Vela lies next to the interpreter that runs the tests.
ENVIRONMENT = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}


@pytest.fixture(scope="session")
def library():
    return ROOT / "build/release/lib/libtosaic_executorch.so"


@pytest.fixture(scope="session")
def plugin(library):
    """The module of the sources, whether tosaic is installed here or not."""
    assert library.exists(), f"{library} is missing; run make plugin"
    os.environ["TOSAIC_EXECUTORCH_PLUGIN"] = str(library)
    spec = importlib.util.spec_from_file_location("plugin_runtime", RUNTIME)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
        import executorch.kernels.quantized  # noqa: F401  what stands between delegates
    return module


@pytest.fixture(scope="session")
def tool(tosaic):
    def call(*arguments):
        done = subprocess.run([tosaic, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
        assert done.returncode == 0, f"tosaic {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}"
        return done.stdout
    return call


@pytest.fixture
def ours(tool, tmp_path):
    """The outputs of a program in tosaic's own runtime."""
    def run(program, inputs, *options):
        files = []
        for i, array in enumerate(inputs):
            np.save(tmp_path / f"input_{i}.npy", array)
            files += ["--input", tmp_path / f"input_{i}.npy"]
        tool("run", program, *files, "--output-dir", tmp_path / "found", *options)
        return [np.load(tmp_path / "found" / f"output_{i}.npy") for i in range(len(list((tmp_path / "found").iterdir())))]
    return run


@pytest.fixture
def theirs(plugin):
    """The outputs of a program in ExecuTorch's, with the plug-in."""
    def run(program, inputs, method="forward", **options):
        import torch
        from executorch.runtime import Runtime
        loaded = Runtime.get().load_program(program, **options).load_method(method)
        return [o.numpy() for o in loaded.execute([torch.from_numpy(i) for i in inputs])]
    return run
