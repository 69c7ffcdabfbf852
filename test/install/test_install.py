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


def test_tokens_of_the_generate_example(prefix, tosaic, tmp_path, monkeypatch):
    """examples/llm without Python: the tokens that PyTorch finds, and no others."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "examples/llm"))
    import decoder

    shape = decoder.Shape(vocab_size=96, hidden_size=64, intermediate_size=128, context=24)
    model = decoder.random_decoder(shape, seed=3)
    prompt = [7, 90, 3, 41, 0, 55, 12, 90, 8, 33]

    def pytorchs(tokens, more):
        tokens = list(tokens)
        for _ in range(more):
            model.forget()
            with torch.no_grad():
                tokens.append(int(model(torch.tensor([tokens]), torch.arange(len(tokens)))[0, -1].argmax()))
        model.forget()
        return tokens[-more:]

    for name, at_once in (("prefill", 8), ("prefill_4", 4), ("decode", 1)):
        inputs = torch.zeros(1, at_once, dtype=torch.int64), torch.arange(at_once)
        with torch.no_grad():
            torch.export.save(torch.export.export(model, inputs, strict=False), tmp_path / f"{name}.pt2")
    methods = [f"{name}={tmp_path / name}.pt2" for name in ("prefill", "prefill_4", "decode")]
    run(tosaic, "compile", *methods, "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    run(tosaic, "compile", tmp_path / "decode.pt2", "--target", "tosa-fp", "-o", tmp_path / "alone.pte")
    run(CMAKE, "-S", ROOT / "examples/llm", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release")
    run(CMAKE, "--build", tmp_path / "build", "-j2")

    def generate(*words, model="m.pte"):
        words = [str(w) for w in words]
        return subprocess.run([tmp_path / "build/generate", tmp_path / model, *words], capture_output=True, text=True)

    # The cache holds the prompt and all but the last token, which nothing is asked about.
    for length, more in ((6, 19), (6, 1), (2, 5), (4, 5), (1, 3), (7, 2), (9, 2), (10, 15)):
        made = generate(more, *prompt[:length])
        assert [int(t) for t in made.stdout.split()] == pytorchs(prompt[:length], more), made.stderr
        assert re.match(rf"prompt: {length} tokens, [\d.]+ a second" + ("; generated: " if more > 1 else "\n"), made.stderr)
    for words, status, said in (((20, *prompt), 1, "cache of 24"), ((2**63 - 1, *prompt), 1, "cache of 24"),
                                ((1, *range(25)), 1, "cache of 24"), ((1, 96), 1, "none of the 96"),
                                ((1, -1), 2, "usage"), ((0, 1), 2, "usage"), ((1, "1x"), 2, "usage"), ((1,), 2, "usage")):
        refused = generate(*words)
        assert (refused.returncode, refused.stdout) == (status, "") and said in refused.stderr
    assert "error[method.missing]" in generate(1, 1, model="alone.pte").stderr
    for methods, said in (({"first": "prefill", "decode": "decode"}, "no method 'prefill'"),
                          ({"prefill": "prefill", "decode": "prefill_4"}, "more than one token")):
        files = [f"{name}={tmp_path / program}.pt2" for name, program in methods.items()]
        run(tosaic, "compile", *files, "--target", "tosa-fp", "-o", tmp_path / "other.pte")
        assert said in generate(1, 1, model="other.pte").stderr
    (tmp_path / "not.pte").write_bytes(b"no program")
    assert "error[run.unknown-format]" in generate(1, 1, model="not.pte").stderr
    run(tosaic, "compile", "prefill=" + str(DIGITS), "decode=" + str(DIGITS), "--target", "tosa-fp", "-o", tmp_path / "d.pte")
    assert "does not take token ids" in generate(1, 1, model="d.pte").stderr


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
