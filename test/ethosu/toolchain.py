# SPDX-License-Identifier: Apache-2.0
"""Vela and tosa_reference_model as functions, each in a process of its own: both may abort."""
import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys

import ethosu.vela.vela  # here, so that the children need not
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import reference_model  # noqa: E402  (the project's own reader of .tosa interfaces)

SYSTEM = {"ethos-u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"), "ethos-u65": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
          "ethos-u85": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only")}


class VelaRefused(Exception):
    pass


def _compile(tosa, target, folder, extra, pipe):
    os.dup2(os.open(folder / "vela.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 1)
    os.dup2(1, 2)
    system, memory = SYSTEM[target.rsplit("-", 1)[0]]
    code = ethosu.vela.vela.main([f"--accelerator-config={target}", "--config=Arm/vela.ini", "--output-format=raw",
                                  f"--system-config={system}", f"--memory-mode={memory}", f"--output-dir={folder}", *extra,
                                  str(tosa)])
    pipe.send(code)


def vela(tosa, target, folder, extra=()):
    """The path of Vela's .npz for a .tosa file."""
    tosa, folder = pathlib.Path(tosa), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / f"{tosa.stem}_vela.npz"
    if result.exists():
        result.unlink()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    gc.freeze()  # a collection in the child would copy every page of what the tests have imported
    process = context.Process(target=_compile, args=(tosa, target, folder, list(extra), theirs))
    process.start()
    process.join(300)
    if process.is_alive():
        process.terminate()
    if not result.exists():
        log = (folder / "vela.log").read_text(errors="replace") if (folder / "vela.log").exists() else ""
        raise VelaRefused(log[-400:])
    return result


def random_inputs(tosa, seed=0):
    """Seeded inputs over the whole range of each type (int32: 16 bits' worth, so that sums stay defined)."""
    rng = np.random.default_rng(seed)
    taken, _ = reference_model.interface(tosa)
    arrays = []
    for _, dtype, shape in taken:
        if dtype == np.bool_:
            arrays.append(rng.integers(0, 2, shape).astype(np.bool_))
        else:
            low, high = (-32768, 32768) if dtype == np.int32 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
            arrays.append(rng.integers(low, high, shape).astype(dtype))
    return arrays


def reference(tosa, inputs, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return reference_model.run(tosa, inputs, folder)
