# SPDX-License-Identifier: Apache-2.0
"""VGF files: Arm's own tools read ours, and ours computes the same from Arm's converter's file of the same TOSA."""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from test_tosa_programs import decibels

TOOLS = pathlib.Path(sys.executable).parent
KINDS = {"float": [], "half": [], "int8": ["--quantize", "int8", "--io", "quantized"], "int8 inside": ["--quantize", "int8"]}


def compiled_to_vgf(model, kind, tool, folder):
    """m.pte, m.vgf and m.tosa in `folder`: one compile."""
    options = [*KINDS[kind], "--calibrate", model.samples] if kind.startswith("int8") else []
    program = halved(model, folder / "half.pt2") if kind == "half" else model.program("raw")
    tool("compile", program, "--target", "vgf", "-o", folder / "m.pte", "--emit", f"vgf={folder / 'm.vgf'}",
         "--emit", f"tosa={folder / 'm.tosa'}", "--require-full-delegation", *options)
    return folder


def halved(model, path):
    """The model in float16, exported anew."""
    import torch
    module = torch.export.load(model.program("raw")).module(check_guards=False).half()
    example = tuple(torch.from_numpy(array).half() for array in model.arrays("input")[0])
    torch.export.save(torch.export.export(module, example), path)
    return path


@pytest.fixture(params=KINDS, scope="module")
def files(request, model, tool, tmp_path_factory):
    """The program, its VGF file and its TOSA file."""
    return compiled_to_vgf(model, request.param, tool, tmp_path_factory.mktemp(f"{model.name}_{request.param}"))


@pytest.fixture(scope="module")
def theirs(files):
    """What Arm's converter makes of the same TOSA."""
    subprocess.run([TOOLS / "model-converter", "-i", files / "m.tosa", "-o", files / "theirs.vgf"], check=True,
                   capture_output=True)
    return files / "theirs.vgf"


def random_inputs(tool, program):
    made = []
    random = np.random.default_rng(3)
    for entry in json.loads(tool("inspect", program, "--json"))["inputs"]:
        *dims, form = entry["type"].split("x")
        shape = [int(d) for d in dims]
        made.append(random.integers(-128, 128, shape).astype(np.int8) if form == "R8_SINT"
                    else random.standard_normal(shape).astype(np.float16 if form == "R16_SFLOAT" else np.float32))
    return made


def test_int8_inside_computes_what_the_integer_target_does(model, tool, tmp_path):
    """With floats around it, the target that takes floats converts in the delegate, the integer target outside it."""
    inputs, results = model.arrays("input")[0], []
    for target in ("vgf", "tosa-int"):
        tool("compile", model.program("raw"), "--target", target, "-o", tmp_path / "m.pte", "--quantize", "int8", "--calibrate",
             model.samples)
        results.append(tool.run(tmp_path / "m.pte", inputs, tmp_path))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_half_is_as_good_as_eager(model, tool, tmp_path):
    """Many layers of 11 bits each are far from float32, here as in PyTorch; folding a batch norm into such weights rounds
    them once more, which may double the error (6 dB)."""
    import torch
    compiled_to_vgf(model, "half", tool, tmp_path)
    inputs = [array.astype(np.float16) for array in model.arrays("input")[0]]
    eager = torch.export.load(tmp_path / "half.pt2").module()(*map(torch.from_numpy, inputs))
    for found, peer, expected in zip(tool.run(tmp_path / "m.vgf", inputs, tmp_path),
                                     [eager] if isinstance(eager, torch.Tensor) else eager, model.arrays("float")[0], strict=True):
        assert found.dtype == np.float16
        assert decibels(expected, found - expected) > decibels(expected, peer.detach().numpy() - expected) - 6


def test_arms_decoder_reads_our_file(files):
    dump = subprocess.run([TOOLS / "vgf_dump", "-i", files / "m.vgf"], capture_output=True, text=True, check=True)
    assert json.loads(dump.stdout)["resources"]


def test_our_file_computes_what_its_tosa_does(files, tool, tmp_path):
    inputs = random_inputs(tool, files / "m.vgf")
    for executor in ("cpu", "interp") if (files / "m.tosa").stat().st_size < 1_000_000 else ("cpu",):
        expected = tool.run(files / "m.tosa", inputs, tmp_path, "--executor", executor)
        for program in ("m.vgf", "m.pte"):
            found = tool.run(files / program, inputs, tmp_path, "--executor", executor)
            assert len(found) == len(expected)
            for f, e in zip(found, expected):
                np.testing.assert_array_equal(f, e)


def test_we_run_the_converters_file(files, theirs, tool, tmp_path):
    inputs = random_inputs(tool, files / "m.vgf")
    expected = tool.run(files / "m.tosa", inputs, tmp_path)
    for f, e in zip(tool.run(theirs, inputs, tmp_path), expected, strict=True):
        np.testing.assert_array_equal(f, e)
    assert (files / "m.vgf").stat().st_size <= 1.0001 * theirs.stat().st_size


def test_structure_is_the_converters(files, theirs, tool):
    """The same instructions in the same order, with the same types and attributes: constants are all that may differ, and
    additions of a constant zero, which the converter drops (a layer norm's bias before it is trained)."""
    instruction = re.compile(r"^ *%\S+: (\S+) = (tosa\.\w+)\(.*?\)(.*)$", re.MULTILINE)
    ours, peers = (instruction.findall(tool("inspect", f)) for f in (files / "m.vgf", theirs))
    if len(ours) != len(peers):
        assert len(re.findall(r"tosa\.add", str(ours))) - len(re.findall(r"tosa\.add", str(peers))) == len(ours) - len(peers)
        ours, peers = ([i for i in all_of if i[1] != "tosa.add"] for all_of in (ours, peers))
    assert len(ours) > 5 and ours == peers
