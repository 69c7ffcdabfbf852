# SPDX-License-Identifier: Apache-2.0
"""--emit firmware: the C is compiled by this machine's compiler, with sanitizers and for 32 bits, and its self-test finds the
bytes that tosaic's own runtime makes."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from board_nets import NETS, write

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "build/models"
QUICK = ["digits", "auto_encoder", "keyword_spotting", "tiny_vit"]
TEN = [*QUICK, "resnet8", "visual_wake_words", "streaming_gru", "mixed", "encoder", "pools"]
# Vela, for Ethos-U, lies next to this Python.
PEERS = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


@pytest.fixture(scope="session")
def nets(tmp_path_factory):
    """The .pt2 and the samples of a net, made when asked for."""
    folder = tmp_path_factory.mktemp("nets")

    def files(name):
        if name in QUICK:
            return MODELS / f"{name}.pt2", MODELS / f"{name}_samples.npz"
        if not (folder / f"{name}.pt2").exists():
            model, make = NETS[name]
            write(folder, name, model(), make)
        return folder / f"{name}.pt2", folder / f"{name}.npz"
    return files


def emit(tosaic, model, samples, folder, *options, target="cortex-m55"):
    command = [tosaic, "compile", model, "-t", target, "--emit", f"firmware={folder}", *options]
    if samples:
        command += ["--calibrate", samples]
    done = subprocess.run(command, capture_output=True, text=True, env=PEERS)
    assert done.returncode == 0, done.stderr
    return model.stem


def self_test(folder, name, *flags, sources=()):
    """Compiles and runs NAME_test.c."""
    program = folder / "self_test"
    files = [str(f) for f in folder.glob("*.c")]
    compiled = subprocess.run(["cc", "-std=c11", "-O1", "-ffp-contract=off", *WARNINGS, *flags, f"-I{folder}", *files, *sources,
                               "-lm", "-o", program], capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr[:3000]
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    checked = re.findall(r"(\d+) of (\d+) bytes differ|(\d+) floats", ran.stdout)
    assert checked, ran.stdout
    return ran.stdout


@pytest.mark.parametrize("name", TEN)
def test_same_as_on_the_pc(name, tosaic, nets, tmp_path):
    emit(tosaic, *nets(name), tmp_path)
    self_test(tmp_path, name)
    self_test(tmp_path, name, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("name", TEN)
def test_in_32_bits(name, tosaic, nets, tmp_path):
    emit(tosaic, *nets(name), tmp_path)
    self_test(tmp_path, name, "-m32", "-msse2", "-mfpmath=sse")


@pytest.mark.parametrize("options", [["--quantize", "int16x8"], ["--weights", "int4"], ["--override", "features: float"]],
                         ids=["int16x8", "int4", "floats"])
def test_other_numbers(options, tosaic, nets, tmp_path):
    emit(tosaic, *nets("keyword_spotting"), tmp_path, *options)
    self_test(tmp_path, "keyword_spotting")


def test_weights_of_4_bits_take_half(tosaic, nets, tmp_path):
    flash = []
    for weights in ["per-channel", "int4"]:
        emit(tosaic, *nets("auto_encoder"), tmp_path / weights, "--weights", weights)
        flash.append(json.loads((tmp_path / weights / "memory.json").read_text())["flash"]["weights"])
    assert flash[1] < 0.55 * flash[0]


def test_control_flow(tosaic, nets, tmp_path):
    emit(tosaic, *nets("branch"), tmp_path)
    self_test(tmp_path, "branch")


def test_states_stay_and_begin_anew(tosaic, nets, tmp_path):
    """Three runs, a new beginning and one more: as tosaic runs them."""
    model, samples = nets("streaming_gru")
    emit(tosaic, model, samples, tmp_path, "-o", tmp_path / "net.pte")
    frames = np.random.default_rng(3).normal(size=(3, 1, 20)).astype(np.float32)
    numbers = ",".join(f"{v!r}f" for v in frames.ravel().tolist())
    (tmp_path / "streaming_gru_test.c").write_text(f"""
#include <stdio.h>
#include "streaming_gru.h"
static const float frames[] = {{{numbers}}};
int main(void) {{
  float out[4];
  for (int i = 0; i < 4; ++i) {{
    if (i % 3 == 0) streaming_gru_init();
    streaming_gru_run(frames + 20 * (i % 3), out);
    for (int k = 0; k < 4; ++k) printf("%.9g\\n", out[k]);
  }}
  puts("1 floats");
  return 0;
}}""")
    told = self_test(tmp_path, "streaming_gru").split()[:16]
    got = np.array([float(v) for v in told]).reshape(4, 4)
    np.testing.assert_array_equal(got[3], got[0])
    assert np.abs(got[1] - got[0]).max() > 0
    stacked = tmp_path / "frames.npy"
    for i in range(3):
        np.save(stacked, frames[0])
    first = subprocess.run([tosaic, "run", tmp_path / "net.pte", "--input", stacked, "--output-dir", tmp_path], capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy").ravel(), got[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["digits", "mixed"])
def test_with_an_npu(name, target, tosaic, nets, tmp_path):
    """The simulator in the NPU's place; of `mixed` a part of the model is C."""
    emit(tosaic, *nets(name), tmp_path, target=target)
    library = pathlib.Path(tosaic).parent.parent / "src/libtosaic_ethosu_c.so"
    self_test(tmp_path, name, "-DTOSAIC_NPU_SIMULATOR", f"-I{ROOT / 'include'}", f"-Wl,-rpath,{library.parent}", sources=[library])


def test_memory_is_told(tosaic, nets, tmp_path):
    """Weights as the sections say, activations no more than what is alive at once."""
    name = emit(tosaic, *nets("keyword_spotting"), tmp_path)
    memory = json.loads((tmp_path / "memory.json").read_text())
    subprocess.run(["cc", "-O1", "-c", f"-I{tmp_path}", tmp_path / f"{name}_weights.c", "-o", tmp_path / "w.o"], check=True)
    sections = subprocess.run(["size", "-A", tmp_path / "w.o"], capture_output=True, text=True).stdout
    flash = sum(int(line.split()[1]) for line in sections.splitlines() if line.startswith(".rodata"))
    assert memory["flash"]["weights"] <= flash <= memory["flash"]["weights"] * 1.02 + 512
    arena = int(re.search(r"ARENA_BYTES (\d+)", (tmp_path / f"{name}.h").read_text())[1])
    assert arena == memory["ram"]["arena"] <= 1.15 * 2 * 64 * 25 * 5
    alive = [tensor["bytes"] for tensor in memory["peak"]]
    assert alive == sorted(alive, reverse=True) and arena / 1.15 <= sum(alive) <= arena
    assert {"method", "tensor", "type", "source"} <= set(memory["peak"][0])
    assert {"function", "operators", "source"} <= set(memory["layers"][0])


def test_equal_steps_are_written_once(tosaic, nets, tmp_path):
    """MobileNet's five blocks of one size: what is called more often than it is written."""
    name = emit(tosaic, *nets("visual_wake_words"), tmp_path)
    code = (tmp_path / f"{name}.c").read_text()
    written = re.findall(rf"^TOSAIC_STEP void ({name}_step\d+)\(", code, re.M)
    called = re.findall(rf"^  ({name}_step\d+)\(", code, re.M)
    assert len(set(written)) == len(written) and set(written) == set(called)
    assert sorted(called.count(step) for step in written)[-2:] == [5, 5]
    layers = json.loads((tmp_path / "memory.json").read_text())["layers"]
    assert [layer["function"] for layer in layers] == called


@pytest.mark.parametrize("option,size,code,owner", [
    ("--sram", "50K", "board.sram", r"36.0 KiB %\S+ 1x48x48x16xi8, features"),
    ("--flash", "200K", "board.flash", r"weights and tables take 2[23]\d\.\d KiB; code"),
], ids=["sram", "flash"])
def test_what_the_board_lacks_is_refused_before_anything_is_written(option, size, code, owner, tosaic, nets, tmp_path):
    model, samples = nets("visual_wake_words")
    command = [tosaic, "compile", model, "-t", "cortex-m55", "--calibrate", samples, "--io", "quantized", option]
    emit = ["--emit", f"firmware={tmp_path / 'fw'}", "-o", tmp_path / "net.pte"]
    for ways in emit, emit[2:]:  # a .pte alone is asked the same
        done = subprocess.run([*command, size, *ways], capture_output=True, text=True)
        assert done.returncode == 1 and f"error[{code}]" in done.stderr and option in done.stderr, done.stderr
        assert re.search(owner, done.stderr), done.stderr
        assert not list(tmp_path.iterdir())
    done = subprocess.run([*command, "300K", *emit], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_calls_of_cmsis_nn(tosaic, nets, tmp_path):
    """Where it computes the same: not with activations of 16 bits."""
    name = emit(tosaic, *nets("keyword_spotting"), tmp_path / "int8", "--kernels", "cmsis-nn")
    printed = (tmp_path / "int8" / f"{name}.c").read_text()
    assert "arm_convolve_wrapper_s8(" in printed and "arm_depthwise_conv_wrapper_s8(" in printed
    assert "tosaic_conv2d" not in printed and "tosaic_depthwise" not in printed
    assert "cmsis-nn" in (tmp_path / "int8/CMakeLists.txt").read_text()
    emit(tosaic, *nets("keyword_spotting"), tmp_path / "int16", "--kernels", "cmsis-nn", "--quantize", "int16x8")
    printed = (tmp_path / "int16" / f"{name}.c").read_text()
    assert "_wrapper_s8(" not in printed and "tosaic_conv2d_s16(" in printed


@pytest.mark.parametrize("target,options,code,hint", [
    ("tosa-int", [], "firmware.target", "cortex-m55"),
    ("vulkan", [], "firmware.target", "cortex-m55"),
])
def test_refused(target, options, code, hint, tosaic, nets, tmp_path):
    model, samples = nets("digits")
    done = subprocess.run([tosaic, "compile", model, "-t", target, "--emit", f"firmware={tmp_path / 'fw'}", *options],
                          capture_output=True, text=True)
    assert done.returncode != 0
    assert code in done.stderr and hint in done.stderr


def test_explain_says_what_has_no_c(tosaic, nets, tmp_path):
    model, samples = nets("mixed")
    done = subprocess.run([tosaic, "explain", model, "-t", "cortex-m55"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sort" in done.stdout
