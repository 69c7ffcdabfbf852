# SPDX-License-Identifier: Apache-2.0
"""An installed tree as another project uses it: find_package, pkg-config, the shared and the static library."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
DIGITS = ROOT / "examples/digits/digits.pt2"
CMAKE = "/usr/bin/cmake" if pathlib.Path("/usr/bin/cmake").exists() else "cmake"  # not a wrapper of pyenv's


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run(CMAKE, "--install", BUILD, "--prefix", folder, "--component", "tosaic")
    return folder


def scores(text):
    """The ten numbers that embed printed."""
    line = re.search(r"f32 \[ 1 10 \] (.*)", text).group(1)
    return [float(x) for x in line.split()]


def expected(tosaic, tmp_path):
    """What the command line gives for the same sample."""
    import numpy as np

    run(tosaic, "compile", DIGITS, "--target", "tosa-int", "-o", tmp_path / "d.pte")
    run(tosaic, "run", DIGITS, "--output-dir", tmp_path / "float")
    return np.load(tmp_path / "float/output_0.npy").ravel()


def test_the_example_builds_and_runs(prefix, tosaic, tmp_path):
    build = tmp_path / "embed"
    run(CMAKE, "-S", ROOT / "examples/cpp", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DSTATIC=ON",
        "-DCMAKE_BUILD_TYPE=Release")
    run(CMAKE, "--build", build, "-j2")
    reference = expected(tosaic, tmp_path)
    for program in ("embed", "embed_static"):
        text = run(build / program, DIGITS, "tosa-int")
        assert "compiled for tosa-int in" in text and "ran on cpu in" in text
        assert max(abs(a - b) for a, b in zip(scores(text), reference)) < 0.1 * max(abs(reference))
    refused = subprocess.run([build / "embed", "no.pt2", "tosa-int"], capture_output=True, text=True)
    assert refused.returncode == 1 and "error[file.missing]" in refused.stderr


def test_pkg_config_names_what_is_there(prefix):
    if not shutil.which("pkg-config"):
        text = next(prefix.glob("lib*/**/tosaic.pc")).read_text()
        assert f"Version: {(ROOT / 'VERSION').read_text().strip()}" in text
        return
    folder = next(prefix.glob("lib*/**/tosaic.pc")).parent
    flags = run("pkg-config", "--cflags", "--libs", "tosaic", env={**os.environ, "PKG_CONFIG_PATH": str(folder)})
    assert "-ltosaic" in flags


def test_only_the_api_is_visible(prefix):
    """The shared library shows what the headers declare, and nothing of its inside."""
    library = next(prefix.glob("lib*/**/libtosaic.so"))
    lines = run("nm", "-DC", "--defined-only", library).splitlines()
    names = [line.split(" ", 2)[2] for line in lines if line.split(" ", 2)[1] in "TDBR"]
    inside = [n for n in names if re.match(r"tosaic::(cpu|ethosu|interp|runtime|pte|vgf|vulkan|vela|tosa|zip)::", n)]
    assert any(n.startswith("tosaic::compile(") for n in names)
    assert inside == []


def test_the_headers_stand_alone(prefix, tmp_path):
    """Each public header compiles by itself, the C ones as C."""
    for header in sorted((prefix / "include/tosaic").iterdir()):
        c = header.suffix == ".h"
        source = tmp_path / ("one.c" if c else "one.cpp")
        source.write_text(f"#include <tosaic/{header.name}>\n")
        run("cc" if c else "c++", "-std=c11" if c else "-std=c++20", "-Wall", "-Wextra", "-pedantic", "-Werror",
            "-fsyntax-only", "-I", prefix / "include", source)
