# SPDX-License-Identifier: Apache-2.0
"""supports, explain, plan and compile are four questions about one program: of every model, target and choice of sizes
they give one answer."""
import itertools

import pytest
import torch
import tosaic
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Partly(nn.Module):
    """One node that only the CPU has."""

    def forward(self, x):
        return torch.relu(torch.linalg.vector_norm(torch.sort(x, -1)[0] + 1, dim=-1))


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.relu() + 1, lambda x: x.tanh(), (x,))


class Sized(nn.Module):
    """What it gives depends on a size, and cannot be one program for all of them."""

    def forward(self, x):
        return x.reshape(-1, 2).cumsum(0)


ROWS, PIXELS = torch.randn(4, 8), torch.randn(4, 3, 8, 8)
BATCH = {0: Dim("batch", min=1, max=8)}
MODELS = {"layers": (Layers, (ROWS,), None), "layers, any batch": (Layers, (ROWS,), (BATCH,)),
          "image": (Image, (PIXELS,), None), "image, any batch": (Image, (PIXELS,), (BATCH,)),
          "partly": (Partly, (ROWS,), None), "partly, any batch": (Partly, (ROWS,), (BATCH,)),
          "branches": (Branches, (ROWS,), None), "sized": (Sized, (ROWS,), (BATCH,))}
TARGETS = [("tosa-fp", {}), ("tosa-int", {}), ("vulkan", {}), ("vulkan", {"quantize": "int8"}), ("vulkan", {"weights": "int8"}),
           ("tosa-fp", {"quantize": "int8", "tosa_spec": "TOSA-1.0+INT+FP"}), ("vgf", {}), ("ethos-u55-128", {})]
SIZES = [None, ["x.0=4"], ["x.0=1,4"]]


def program_of(name):
    torch.manual_seed(0)
    model, example, shapes = MODELS[name]
    return tosaic.Program.of(torch.export.export(model().eval(), example, dynamic_shapes=shapes))


def answer(question, *arguments, **options):
    """What it says; or the code of what it refuses."""
    try:
        return question(*arguments, **options)
    except tosaic.Error as error:
        return error.code


def calls(name, sizes):
    """Samples of each size that is chosen: compile asks for them, explain makes them up."""
    x, = MODELS[name][1]
    return [(x[:rows],) for rows in ((1, 4) if sizes == ["x.0=1,4"] and x.shape[0] == 4 else (4,))]


def judged(nodes):
    return {n.name: (n.taken, n.reason.code if n.reason else "") for n in nodes}


@pytest.mark.parametrize("name", MODELS)
def test_answers_agree(name):
    program = program_of(name)
    varies = MODELS[name][2] is not None
    for (target, options), sizes in itertools.product(TARGETS, SIZES if varies else SIZES[:1]):
        options = options | ({"sizes": sizes} if sizes else {})
        about = f"{name}, {target}, {options}"
        supported = answer(tosaic.supports, program, target, **options)
        explained = answer(tosaic.explain, program, target, **options)
        planned = answer(tosaic.plan, program, target, **options)
        samples = None if planned == "plan.floats" else calls(name, sizes)
        compiled = answer(tosaic.compile, program, target=target, calibration=samples, **options)
        refused = isinstance(compiled, str)
        assert planned == "plan.floats" or isinstance(supported, str) == (isinstance(planned, str) and "\n" not in planned), (
            about, planned)
        if isinstance(explained, str) or isinstance(supported, str):
            assert supported == explained == compiled, about
            continue
        assert judged(supported) == judged(explained.nodes), about
        warned = any("compile refuses" in m.message for m in explained.summary.messages)
        assert refused == warned, (about, compiled)
        if not refused:
            assert judged(compiled.summary.nodes) == judged(explained.nodes), about


@pytest.mark.parametrize("sizes", [None, ["x.0=4"], ["x.0=1,4"]])
def test_a_plan_that_is_printed_is_read(sizes, tmp_path):
    """Of programs whose sizes vary, or are several, too; overridden, each node stays where the plan says."""
    program = program_of("layers, any batch")
    options = {"quantize": "int8"} | ({"sizes": sizes} if sizes else {})
    text = tosaic.plan(program, "vulkan", **options)
    file = tmp_path / "plan"
    file.write_text(text)
    samples = calls("layers, any batch", sizes)
    artifact = tosaic.compile(program, target="vulkan", plan=str(file), calibration=samples, **options)
    assert artifact.pte == tosaic.compile(program, target="vulkan", calibration=samples, **options).pte
    assert judged(tosaic.supports(program, "vulkan", plan=str(file), **options)) == judged(
        tosaic.explain(program, "vulkan", plan=str(file), **options).nodes)


def test_sizes_decide():
    """At 2 rows it is another program than at 8; `sizes` counts for what is supported."""
    class Window(nn.Module):
        def forward(self, x):
            return nn.functional.avg_pool2d(x, (1, 2)).amax(0)

    program = tosaic.Program.of(torch.export.export(Window(), (torch.randn(4, 1, 8, 8),), dynamic_shapes=(BATCH,)))
    with pytest.raises(tosaic.Error, match="model.dynamic-shape"):
        tosaic.supports(program, "tosa-fp")
    assert all(n.taken for n in tosaic.supports(program, "tosa-fp", sizes=["x.0=4"]))
    with pytest.raises(tosaic.Error, match="model.size"):
        tosaic.supports(program, "tosa-fp", sizes=["x.0=9"])
