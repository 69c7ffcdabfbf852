# SPDX-License-Identifier: Apache-2.0
"""A whole program for an NPU: what inspect shows of it, where its blocks may lie, and on what it refuses to run."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import executorch_programs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela


@pytest.fixture(scope="module")
def call(tosaic):
    def run(*arguments, fails=None, code=1):
        done = subprocess.run([tosaic, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        if fails:
            assert done.returncode == code and f"error[{fails}]" in done.stderr, done.stdout + done.stderr
            return done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        executorch_programs.check_written(arguments, tosaic, done.stderr)
        return done.stdout
    return run


@pytest.fixture(scope="module")
def compiled(call, tmp_path_factory):
    """compiled(target, *options) -> the digits model as a .pte, in a folder of its own"""
    made = {}

    def once(target, *options):
        if (target, options) not in made:
            folder = tmp_path_factory.mktemp("digits")
            options_here = [str(o).replace("FOLDER", str(folder)) for o in options]
            call("compile", ROOT / "examples/digits/digits.pt2", "--target", target, "--calibrate",
                 ROOT / "examples/digits/digits_samples.npz", "-o", folder / "digits.pte", *options_here)
            made[target, options] = folder / "digits.pte"
        return made[target, options]
    return once


@pytest.fixture(scope="module")
def digit(tmp_path_factory):
    with np.load(ROOT / "examples/digits/digits_samples.npz") as samples:
        sample = samples[samples.files[0]][:1]
    path = tmp_path_factory.mktemp("digit") / "digit.npy"
    np.save(path, sample.reshape(sample.shape[0], *sample.shape[1:]) if sample.ndim == 4 else sample[0])
    return path


def result(call, program, digit, folder, *options):
    call("run", program, "--input", digit, "--output-dir", folder, *options)
    return np.load(folder / "output_0.npy")


def shown(call, *arguments):
    return json.loads(call("inspect", *arguments, "--json"))


@pytest.mark.parametrize("target", ["ethos-u55-64", "ethos-u65-512", "ethos-u85-256"])
def test_inspect_names_the_product_and_every_part(call, compiled, target):
    pte = compiled(target)
    npu = shown(call, pte)["methods"][0]["delegates"][0]["ethos_u"]
    assert npu["product"] == target and npu["container"] == "COP1"
    assert npu["cmd_data"]["bytes"] > 100 and npu["weight_data"]["bytes"] > 100
    assert [r["purpose"] for r in npu["regions"]][:2] == ["constants", "scratch"]
    assert next(r["bytes"] for r in npu["regions"] if r["region"] == 1) == npu["scratch_bytes"]
    image, = npu["inputs"]
    assert image["type"] == "1x1x8x8xi8" and image["bytes"] == 64 and image["scale"] > 0
    assert npu["outputs"][0]["scale"] > 0 and npu["operations"]["CONV"] >= 1
    assert "listing" not in npu
    text = call("inspect", pte)
    assert target in text and "CONV" in text and "ifm" not in text


def test_inspect_disassembles(call, compiled):
    pte = compiled("ethos-u55-128")
    lines = [line for line in call("inspect", pte, "--disassemble").splitlines() if re.match(" +0x", line)]
    assert any(re.search("CONV +ifm .* nhwc .*ofm .*, weights 0:0x", line) for line in lines)
    npu = shown(call, pte, "--disassemble")["methods"][0]["delegates"][0]["ethos_u"]
    assert [line.strip() for line in lines] == [line.strip() for line in npu["listing"]]
    assert sum(" ifm " in line for line in lines) + sum("bytes" in line for line in lines) == sum(npu["operations"].values())
    registers = call("inspect", pte, "--registers")
    assert "SET_IFM_PRECISION activation_type=" in registers.replace("  ", " ") or "IFM_PRECISION" in registers


def test_every_delegates_files_are_kept(tosaic, tmp_path):
    class Twice(torch.nn.Module):  # sort is no operation of the NPU
        def forward(self, x):
            return (x + x.flip(0)).sort(0)[0] * x

    torch.export.save(torch.export.export(Twice(), (torch.randn(4, 8),)), tmp_path / "m.pt2")
    subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "ethos-u55-128", "-o", tmp_path / "m.pte",
                    "--emit", f"vela={tmp_path / 'kept'}"], check=True)
    names = {path.name for path in (tmp_path / "kept").iterdir()}
    for k in 0, 1:
        assert {f"network_{k}.tosa", f"network_{k}_vela.npz", f"vela_{k}.log"} <= names, names


def test_inspect_reads_streams_without_a_program(call, compiled, tmp_path):
    kept = compiled("ethos-u55-128", "--emit", "vela=FOLDER").parent
    npz = next(kept.glob("*_vela.npz"))
    npu = shown(call, npz)["ethos_u"]
    assert npu["product"] == "ethos-u55-128" and npu["inputs"][0]["bytes"] == 64 and "type" not in npu["inputs"][0]
    with np.load(npz) as arrays:
        (tmp_path / "stream.bin").write_bytes(arrays["cmd_data"].tobytes())
    assert shown(call, tmp_path / "stream.bin")["ethos_u"]["operations"] == npu["operations"]
    pte = (kept / "digits.pte").read_bytes()
    begin, end = pte.index(b"vela_bin_stream"), pte.index(b"vela_end_stream") + 32
    (tmp_path / "payload.bin").write_bytes(pte[begin:end])
    assert shown(call, tmp_path / "payload.bin")["ethos_u"]["operations"] == npu["operations"]
    (tmp_path / "cut.bin").write_bytes(pte[begin:begin + 200])
    assert "cut.bin" in call("inspect", tmp_path / "cut.bin", fails="vela.truncated")
    (tmp_path / "garbage.bin").write_bytes(b"COP1" + bytes(60))
    assert "unreadable" in call("inspect", tmp_path / "garbage.bin")
    call("inspect", tmp_path / "garbage.bin", "--disassemble", fails="ethosu.container")


@pytest.mark.parametrize("options", [("--vela-flags=--cop-format=COP2",),
                                     ("--vela-flags=--separate-io-regions", "--vela-flags=--cop-format=COP2"),
                                     ("--memory-mode", "Dedicated_Sram_256KB", "--system-config", "Ethos_U85_SYS_DRAM_High")])
def test_other_forms_of_the_stream_give_the_same_result(call, compiled, digit, tmp_path, options):
    target = "ethos-u85-256"
    expected = result(call, compiled(target), digit, tmp_path / "plain")
    pte = compiled(target, *options)
    np.testing.assert_array_equal(result(call, pte, digit, tmp_path / "other"), expected)
    npu = shown(call, pte)["methods"][0]["delegates"][0]["ethos_u"]
    if "--vela-flags=--separate-io-regions" in options:
        assert npu["inputs"][0]["region"] == 3 and npu["outputs"][0]["region"] == 4
        assert {"inputs", "outputs"} <= {r["purpose"] for r in npu["regions"]}
    if "--vela-flags=--cop-format=COP2" in options:
        assert npu["container"] == "COP2"


def test_external_blocks(call, compiled, digit, tmp_path):
    expected = result(call, compiled("ethos-u55-128"), digit, tmp_path / "inside")
    pte = compiled("ethos-u55-128", "--external", "weights=FOLDER/w.ptd", "--external", "commands=FOLDER/c.ptd")
    data = [o for name in ("w.ptd", "c.ptd") for o in ("--data", pte.parent / name)]
    assert pte.stat().st_size + 1000 < compiled("ethos-u55-128").stat().st_size
    np.testing.assert_array_equal(result(call, pte, digit, tmp_path / "outside", *data), expected)
    said = call("run", pte, "--data", pte.parent / "c.ptd", fails="vela.external")
    assert "weights" in said and "--data FILE.ptd" in said
    npu = shown(call, pte)["methods"][0]["delegates"][0]["ethos_u"]
    assert len(npu["weight_data"]["external"]) == 64 and "product" not in npu and "outside" in npu["error"]
    call("inspect", pte, "--disassemble", fails="vela.external")
    assert shown(call, pte, *data)["methods"][0]["delegates"][0]["ethos_u"]["product"] == "ethos-u55-128"
    assert [e["name"] for e in shown(call, pte.parent / "w.ptd")["data"]] == [npu["weight_data"]["external"]]


def test_external_blocks_are_for_some_targets(call, tmp_path):
    def compiled(target, kind, **fails):
        return call("compile", ROOT / "examples/digits/digits.pt2", "--target", target, "-o", tmp_path / "a.pte",
                    "--external", f"{kind}={tmp_path / 'w.ptd'}", **fails)

    compiled("vgf", "weights", fails="option.target", code=2)
    compiled("tosa-fp", "commands", fails="option.value", code=2)
    assert not list(tmp_path.iterdir())
    compiled("tosa-fp", "weights")
    assert (tmp_path / "w.ptd").stat().st_size > 20_000 > (tmp_path / "a.pte").stat().st_size


def test_no_external_blocks_are_warned_of(tosaic, tmp_path):
    class Add(torch.nn.Module):
        def forward(self, x):
            return x + 1

    torch.export.save(torch.export.export(Add(), (torch.ones(2),)), tmp_path / "add.pt2")
    done = subprocess.run([tosaic, "compile", "add.pt2", "--target", "tosa-fp", "-o", "a.pte", "--external", "weights=w.ptd"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "warning[external.none]: w.ptd is not written" in done.stderr, done.stderr
    assert (tmp_path / "a.pte").exists() and not (tmp_path / "w.ptd").exists()


def test_another_product_is_refused(call, compiled, digit):
    pte = compiled("ethos-u55-128")
    call("run", pte, "--input", digit, "--device", "ethos-u55-128")
    said = call("run", pte, "--input", digit, "--device", "ethos-u55-256", fails="delegate.product")
    assert "ethos-u55-128" in said and "--target ethos-u55-256" in said
    call("run", pte, "--device", "ethos-u5-128", fails="target.unknown")
    call("run", pte, "--device", "tosa-int", fails="run.device")


@pytest.mark.parametrize("place", [0, 5])  # words of the block: a dimension of the input, a dimension of the output
def test_sizes_that_differ_from_the_stream_are_refused(call, compiled, digit, tmp_path, place):
    raw = bytearray(compiled("ethos-u55-128").read_bytes())
    block = raw.index(b"inputs\0" if place == 0 else b"outputs\0") + 32 + 4
    shape = struct.unpack_from("<6i", raw, block)
    largest = shape.index(max(shape))
    struct.pack_into("<i", raw, block + 4 * largest, shape[largest] // 2)
    (tmp_path / "changed.pte").write_bytes(raw)
    said = call("run", tmp_path / "changed.pte", "--input", digit, fails="delegate.arguments")
    assert ("input 0" if place == 0 else "output 0") in said and "the payload takes" in said


@pytest.mark.parametrize("target,fits", [("ethos-u55-128", "Ethos_U55_Deep_Embedded"), ("ethos-u65-256", "Ethos_U65_High_End")])
def test_another_familys_configuration_is_refused(call, tmp_path, target, fits):
    model = ["compile", ROOT / "examples/digits/digits.pt2", "--target", target, "--calibrate",
             ROOT / "examples/digits/digits_samples.npz", "-o", tmp_path / "a.pte"]
    said = call(*model, "--system-config", "Ethos_U85_SYS_DRAM_Mid", fails="vela.config")
    assert fits in said and "Ethos_U85_SYS_DRAM_Low" not in said
    ini = tmp_path / "my board.ini"
    ini.write_text("[System_Config.Board_U85]\ncore_clock=1e9\n[System_Config.Board]\n[Memory_Mode.All]\n")
    said = call(*model, "--vela-config", ini, "--system-config", "Board_U85", "--memory-mode", "All", fails="vela.config")
    assert "those that fit: Board\n" in said and "my board.ini" in said
    assert [p.name for p in tmp_path.iterdir()] == ["my board.ini"]


class HandsBack(torch.nn.Module):
    def forward(self, i):
        return torch.cat([i]), 3 * i


class NarrowedForNothing(torch.nn.Module):
    """CLIP's text model finds its last token like this: a conversion that does nothing once int64 is int32."""

    def __init__(self):
        super().__init__()
        self.embedding, self.linear = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 4)

    def forward(self, i):
        return i.to(torch.int32).argmax(-1), self.linear(self.embedding(i))


@pytest.mark.parametrize("module,dtype", [(HandsBack, torch.int32), (NarrowedForNothing, torch.int64)])
def test_an_input_that_is_an_output(call, tmp_path, module, dtype):
    torch.manual_seed(0)
    model, given = module().eval(), torch.randint(0, 9, (1, 6), dtype=dtype)
    torch.export.save(torch.export.export(model, (given,)), tmp_path / "model.pt2")
    np.savez(tmp_path / "samples.npz", i=given.numpy()[None])
    np.save(tmp_path / "input.npy", given.numpy())
    call("compile", tmp_path / "model.pt2", "--target", "ethos-u55-128", "--calibrate", tmp_path / "samples.npz", "-o", tmp_path / "m.pte")
    call("run", tmp_path / "m.pte", "--input", tmp_path / "input.npy", "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), model(given)[0].numpy())
