# SPDX-License-Identifier: Apache-2.0
"""The Vela on PATH compiles quantised models, and the simulator gives with its streams what the TOSA program gives, byte
for byte. The digits and the ViT on one product; all quick models on three with --all-models.
"""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_generate_tests(metafunc):
    if metafunc.config.getoption("--all-models"):
        names = sorted(p.name.removesuffix("_pt2e.pt2") for p in (ROOT / "build" / "models").glob("*_pt2e.pt2"))
        targets = ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"]
    else:
        names, targets = ["digits", "tiny_vit"], ["ethos-u55-128"]
    metafunc.parametrize("target", targets)
    metafunc.parametrize("name", names)


def test_streams_give_what_the_tosa_gives(tosaic, name, target, tmp_path):
    model = ROOT / "build" / "models" / f"{name}_pt2e.pt2"
    if not model.exists():
        subprocess.run([sys.executable, ROOT / "test" / "models" / "make_models.py", "--only", name, "--output", model.parent],
                       check=True, capture_output=True)
    results = []
    samples = np.load(model.with_name(f"{name}_samples.npz"))
    inputs = []
    for key in samples.files:
        np.save(tmp_path / f"{key}.npy", samples[key][0])
        inputs += ["--input", tmp_path / f"{key}.npy"]
    for chosen in ("tosa-int", target):
        program = tmp_path / f"{chosen}.pte"
        made = subprocess.run([tosaic, "compile", model, "--target", chosen, "-o", program], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"})
        assert made.returncode == 0 and "set-aside" not in made.stderr, made.stderr
        subprocess.run([tosaic, "run", program, *inputs, "--output-dir", tmp_path / chosen], check=True, capture_output=True)
        results.append([p.read_bytes() for p in sorted((tmp_path / chosen).iterdir())])
    assert results[0] == results[1]
