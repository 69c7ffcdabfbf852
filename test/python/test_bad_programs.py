# SPDX-License-Identifier: Apache-2.0
"""Sizes, states, loops and weights that do not fit: the same code, location and hint in Python and on the command
line."""
import pathlib
import re
import subprocess

import numpy as np
import pytest
import torch
import tosaic
from functions import Of
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")
TOOL = pathlib.Path(tosaic.__file__).parent / "bin" / "tosaic"
EXECUTORS = ("cpu", "interp")
N = Dim("n", min=2, max=9)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def export(module, inputs, shapes=None):
    program = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=False)
    torch.export.save(program, "m.pt2")
    symbols = re.search(r"s\d+", str(program.range_constraints))
    return symbols and symbols.group()


def call(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)


def told(text):
    """The error alone, without warnings, and without the source line and node that are shown of it."""
    error = next(block for block in re.split(r"\n(?=\S)", text.strip("\n")) if ": error[" in block)
    return re.sub(re.escape(__file__) + r":\d+", "HERE", re.sub(r"\n    .*|\n  node .*", "", error))


def refused_compiling(said, *sizes, target="tosa-fp"):
    done = call("compile", "m.pt2", "--target", target, "-o", "m.pte", *(w for s in sizes for w in ("--sizes", s)))
    assert done.returncode == 1 and not pathlib.Path("m.pte").exists(), done
    assert told(done.stderr) == said
    with pytest.raises(tosaic.Error) as why:
        tosaic.compile("m.pt2", target=target, sizes=sizes)
    assert told(str(why.value)) == said


def refused_running(said, program, *inputs, in_python=None, executors=EXECUTORS):
    """The tool looks at inputs before the library does, and knows their files."""
    words = []
    for i, x in enumerate(inputs):
        np.save(f"{i}.npy", np.asarray(x))
        words += ["--input", f"{i}.npy"]
    for executor in executors:
        done = call("run", program, *words, "--executor", executor)
        assert done.returncode == 1 and told(done.stderr) == said
        with pytest.raises(tosaic.Error) as why:
            tosaic.load(program, executor=executor).run(*inputs)
        assert told(str(why.value)) == (in_python or said)


def compiled(*options, target="tosa-fp"):
    done = call("compile", "m.pt2", "--target", target, "-o", "m.pte", *options)
    assert done.returncode == 0, done.stderr


def test_a_symbol_without_bound():
    s = export(nn.ReLU(), (torch.randn(3, 4),), ({0: Dim.AUTO},))
    refused_compiling(f"m.pt2: error[model.dynamic-shape]: the program is for many sizes (input.0 is {s}, {s} in 2..), a compiled "
                      "one for one of each\n  help: choose: --sizes input.0=4, say; or export the model without dynamic_shapes")
    refused_compiling(f"m.pt2: error[model.size]: input.0 is {s}, which has no upper bound\n  help: choose a number", "input.0=max")
    refused_compiling(f"m.pt2: error[model.size]: size '{s}' (2..) has no upper bound\n  help: give one when exporting "
                      "(torch.export.Dim(..., max=)), or choose it: --sizes NAME=SIZE", target="vulkan")


SHOWS = "\n  help: `tosaic inspect` shows the symbols of the program's sizes and their ranges"
TAKES = "\n  help: `tosaic inspect` shows what the program takes; convert arrays with numpy's .astype (bf16: ml_dtypes.bfloat16)"


def test_sizes_beyond_bounds_or_against_a_relation():
    s = export(Of(lambda x, y: x.sum(0) + y.sum(0)), (torch.randn(3, 4), torch.randn(6, 4)), (({0: N}, {0: 2 * N}),))
    long, eight, short = torch.ones(20, 4), torch.ones(8, 4), torch.ones(3, 4)
    related = f"model.size]: inputs_1.0 is 8, and has to be 6 = 2*{s}, as inputs_0.0 is 3 ({s}){SHOWS}"
    refused_running(f"0.npy: error[run.input-type]: input 0 is 20x4xf32, the program takes {s}x4xf32\n"
                    f"  note: inputs_0.0 is 2..9 ({s}){TAKES}", "m.pt2", long, long,
                    in_python=f"m.pt2: error[run.input-type]: input 0 is 20x4xf32, ({s} in 2..9)x4xf32 is wanted{TAKES}")
    refused_running(f"m.pt2: error[{related}", "m.pt2", short, eight)
    refused_compiling(f"m.pt2: error[model.size]: inputs_0.0 is 10 ({s}), outside of its range 2..9{SHOWS}", "inputs_0.0=10")
    refused_compiling(f"m.pt2: error[model.size]: inputs_1.0 is 2*{s}, and cannot be 5\n"
                      f"  help: choose a size of that form, or {s} itself", "inputs_1.0=5")
    compiled("--sizes", "inputs_0.0=3")
    refused_running(f"1.npy: error[run.input-type]: input 1 is 8x4xf32, the program takes 6x4xf32{TAKES}", "m.pte", short, eight,
                    in_python=f"m.pte: error[run.input-type]: input 1 is 8x4xf32, 6x4xf32 is wanted{TAKES}")
    compiled("--sizes", "inputs_0.0=3,4")
    refused_running("m.pte: error[run.sizes]: no method takes inputs of the sizes 3x4, 8x4; there are forward (3x4, 6x4); forward_4 "
                    "(4x4, 8x4)\n  help: compile the model with these --sizes, too", "m.pte", short, eight)
    compiled(target="vulkan")
    refused_running(f"m.pte: error[{related}", "m.pte", short, eight, executors=("cpu",))


class Adds(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4))

    def forward(self, x):
        self.kept.add_(x.sum(0))
        return self.kept * 2


CONVERT = "\n  help: `tosaic inspect` shows what it is; convert the content with numpy's .astype or .reshape"


def test_a_state_of_another_shape():
    export(Adds(), (torch.randn(3, 4),))
    compiled()
    pathlib.Path("states").mkdir()
    for program in ("m.pt2", "m.pte"):
        session = tosaic.load(program)
        for wrong in (np.ones(5, np.float32), np.ones(4, np.int32)):
            np.save("states/kept.npy", wrong)
            done = call("run", program, "--states", "states")
            kind = "5xf32" if len(wrong) == 5 else "4xi32"
            assert done.returncode == 1 and told(done.stderr) == (
                f"states/kept.npy: error[run.state-type]: state 'kept' is 4xf32, this file holds {kind}{CONVERT}")
            np.testing.assert_array_equal(np.load("states/kept.npy"), wrong)
            with pytest.raises(tosaic.Error) as why:
                session.load_state_dict({"kept": wrong})
            assert told(str(why.value)) == f"{program}: error[run.state-type]: state 'kept' is {kind}, 4xf32 is wanted{CONVERT}"


class Endless(nn.Module):
    def forward(self, x):
        return while_loop(lambda x: x.sum() < 9, lambda x: (x * 1.0,), (x,))[0]


def test_a_loop_without_end(monkeypatch):
    monkeypatch.setenv("TOSAIC_LOOP_LIMIT", "50")
    export(Endless(), (torch.ones(3),))
    compiled()
    said = ("error[run.loop-limit]: a loop of the program does not end within 50 iterations\n"
            "  help: if it ends at all, allow it more: TOSAIC_LOOP_LIMIT=N in the environment")
    refused_running(f"m.pte: {said}", "m.pte", torch.ones(3))
    refused_running(f"HERE: {said}", "m.pt2", torch.ones(3))


class Cache(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.register_buffer("keys", torch.zeros(1, 8, 4))

    def forward(self, x, at):
        self.write(self.keys, x, at)
        return self.keys.sum(-1)


def put(keys, x, at):
    keys[:, at] = x


def narrow(keys, x, at):
    place = at.item()
    torch._check_is_size(place)
    torch._check(place < 8)
    keys.narrow(1, place, 1).copy_(x)


WRITES = {"index_copy": lambda keys, x, at: keys.index_copy_(1, at, x), "put": put, "narrow": narrow,
          "scatter": lambda keys, x, at: keys.scatter_(1, at[None, :, None].expand(1, 1, 4), x)}


@pytest.mark.parametrize("write", WRITES)
def test_a_cache_that_is_full(write):
    x, at = torch.ones(1, 1, 4), torch.tensor([8])
    export(Cache(WRITES[write]), (x, torch.tensor([3])))
    said = ("error[tosa.unpredictable]: the values lead to a result that TOSA leaves open, so none is made up\n  note: {}: index 8 is "
            "outside {}..7\n  help: look for indices outside their table and divisions by zero, in the inputs or in the model")
    refused_running("HERE: " + said.format("scatter", 0), "m.pt2", x, at)
    compiled()
    refused_running("HERE: " + said.format("scatter", 0), "m.pte", x, at)
    compiled(target="vulkan")
    name = "place.12.i32" if write == "narrow" else "at.i32"  # saturated to 32 bits where it becomes an index, and not before
    refused_running("m.pte: " + said.format(f"input '{name}'", -8 if write in ("put", "narrow") else 0), "m.pte", x, at, executors=("cpu",))


def test_weights_that_are_not_there():
    export(nn.Linear(64, 64), (torch.randn(1, 64),))
    compiled("--external", "weights=w.ptd")
    export(nn.Linear(64, 32), (torch.randn(1, 64),))
    call("compile", "m.pt2", "--target", "tosa-fp", "-o", "other.pte", "--external", "weights=other.ptd")
    said = ("m.pte (delegate 0): error[tosa-file.constant-outside]: the 16384 bytes of constant 'const.3' lie outside the file, and "
            "nobody gives them\n  note: in operator 2 of block 'main'\n  note: in instruction 0 of method 'forward'\n  help: use the "
            ".pte that the graph belongs to, and give the data file that was written next to it: --data FILE.ptd")
    for data in ({}, {"other.ptd": pathlib.Path("other.ptd").read_bytes()}):
        done = call("run", "m.pte", *(word for file in data for word in ("--data", file)))
        assert done.returncode == 1 and told(done.stderr) == said
        with pytest.raises(tosaic.Error) as why:
            tosaic.load("m.pte", data=data)
        assert told(str(why.value)) == said
    pathlib.Path("w.ptd").unlink()
    done = call("run", "m.pte", "--data", "w.ptd")
    assert done.returncode == 1 and told(done.stderr) == (
        "w.ptd: error[file.missing]: cannot open w.ptd: No such file or directory\n  help: check the path and its permissions")
