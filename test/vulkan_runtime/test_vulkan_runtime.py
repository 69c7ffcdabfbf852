# SPDX-License-Identifier: Apache-2.0
"""The runtime for Vulkan alone, built as a program on a phone would have it: without compiler and operators, with headers
of other projects only; and what its example says. `--all-models` also builds it for a phone's processors."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
CMAKE = "/usr/bin/cmake" if pathlib.Path("/usr/bin/cmake").exists() else "cmake"  # not a wrapper of pyenv's
CROSS = "aarch64-linux-gnu-g++"
# Every source of it once, of other projects these headers.
HEADERS = ["fmt", "flatbuffers", "xxhash.h", "volk.h", "volk.c", "vulkan", "vk_video"]


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def configured(build, *options):
    run(CMAKE, "-S", ROOT, "-B", build, "-G", "Ninja", "-DTOSAIC_VULKAN_RUNTIME=ON", "-DCMAKE_BUILD_TYPE=Release", *options,
        env=os.environ | {"PATH": f"/usr/bin:{os.environ['PATH']}"})
    return build


def test_what_it_is_made_of(tmp_path):
    build = configured(tmp_path / "build")
    commands = json.loads((build / "compile_commands.json").read_text())
    files = [pathlib.Path(c["file"]) for c in commands]
    folders = {f.relative_to(ROOT).parent for f in files if build not in f.parents}  # and tables that CMake writes
    assert {str(f) for f in folders} == {"cmake", "examples/vulkan_runtime", "src/base", *(f"src/base/system/{name}" for name in ("hosted", "posix", "linux")), "src/ir", "src/contract", "src/formats", "src/formats/spirv",
                                         "src/formats/spirv/compute", "src/formats/vulkan_program", "src/vulkan", "src/delegates/vulkan"}
    # The example is what users copy: it compiles against the header alone.
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include",
        ROOT / "examples/vulkan_runtime/run_payload.cpp")


@pytest.fixture
def everything(request):
    if not request.config.getoption("--all-models"):
        pytest.skip("minutes of compiling: make test-vulkan")


def test_it_runs_what_the_compiler_made(tosaic, tmp_path, everything):
    build = configured(ROOT / "build/vulkan_runtime")
    run(CMAKE, "--build", build)
    run(tosaic, "compile", DIGITS / "digits.pt2", "--target", "vulkan", "-o", tmp_path / "d.pte", "--require-full-delegation")
    run(tosaic, "extract", tmp_path / "d.pte", "-o", tmp_path / "payload")
    payload, = (tmp_path / "payload").iterdir()
    run(tosaic, "run", tmp_path / "d.pte", "--input", DIGITS / "digit.npy", "--output-dir", tmp_path)
    (tmp_path / "digit.bin").write_bytes(np.load(DIGITS / "digit.npy").tobytes())
    said = run(build / "bin/run_payload", payload, tmp_path / "digit.bin")
    found = [float(x) for x in re.search(r"output .*bytes each (.*)", said).group(1).split()]
    np.testing.assert_allclose(found, np.load(tmp_path / "output_0.npy").ravel(), rtol=1e-5)
    library = build / "src/libtosaic_vulkan_runtime.so"
    needed = run("readelf", "-d", library)
    assert not re.search(r"NEEDED.*(vulkan|fmt|flatbuffers|simdjson|hwy)", needed), needed
    refused = subprocess.run([build / "bin/run_payload", DIGITS / "digits.pt2"], capture_output=True, text=True)
    assert refused.returncode == 1 and "vulkan-program.format" in refused.stderr


def test_it_compiles_for_phones(tmp_path, everything):
    if not shutil.which(CROSS):
        pytest.skip(f"{CROSS} is not installed (Debian: g++-aarch64-linux-gnu)")
    (tmp_path / "include").mkdir()
    for header in HEADERS:
        (tmp_path / "include" / header).symlink_to(pathlib.Path("/usr/include", header))
    build = configured(tmp_path / "build", f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake/aarch64-linux-gnu.cmake'}",
                       f"-DCMAKE_PREFIX_PATH={tmp_path}")
    run(CMAKE, "--build", build)
    assert "AArch64" in run("readelf", "-h", build / "src/libtosaic_vulkan_runtime.so")
