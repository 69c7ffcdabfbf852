# SPDX-License-Identifier: Apache-2.0
"""Parts of one program in int8, int16x8 and float, as overrides and plan files say: against PyTorch, and every
delegate bit for bit against tosa_reference_model (Ethos-U compares its own delegates with their TOSA graphs)."""
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

import reference_model


def decibels(found, expected):
    error = np.square(found.astype(np.float64) - expected.astype(np.float64)).sum()
    return 10 * np.log10(np.square(expected.astype(np.float64)).sum() / max(error, 1e-30))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.act = nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.second = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        y = self.act(self.norm(self.first(x)))
        return self.act(self.second(y) + y)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(Block(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.Hardswish())
        self.neck, self.head = nn.Conv2d(16, 16, 1), nn.Linear(32, 5)

    def forward(self, x):
        y = self.features(x)
        gate = torch.sigmoid(self.neck(y))
        return torch.softmax(self.head(torch.cat([y * gate, gate], 1).mean((2, 3))), -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        h = self.norm(x)
        a = torch.softmax(self.q(h) @ self.k(h).transpose(-1, -2) / 4, -1)
        x = x + self.out(a @ self.v(h))
        return x + self.ff(x)


NETS = {"convolutional": (Convolutional, (1, 4, 16, 16)), "attention": (Attention, (1, 8, 16))}


@pytest.fixture(scope="module", params=NETS)
def net(request, tmp_path_factory):
    torch.manual_seed(0)
    make, shape = NETS[request.param]
    module, samples = make().eval(), torch.randn(16, *shape)
    folder = tmp_path_factory.mktemp(request.param)
    torch.export.save(torch.export.export(module, (samples[0],)), folder / "net.pt2")
    np.savez(folder / "samples.npz", x=samples.numpy())
    return request.param, module, samples[3:9], folder


def overrides(*lines):
    return [word for line in lines for word in ("--override", line)]


def compiled(tool, folder, target, *options):
    for old in folder.glob("net*.tosa"):
        old.unlink()
    tool("compile", folder / "net.pt2", "--target", target, "--calibrate", folder / "samples.npz", "-o", folder / "net.pte",
         "--emit", f"tosa={folder / 'net.tosa'}", *options)
    return sorted(folder.glob("net*.tosa"))


def signals(net, tool, tmp_path, target, *options):
    """How near PyTorch the program is; every delegate is what the reference model says."""
    name, module, inputs, folder = net
    random = np.random.default_rng(1)
    for part in compiled(tool, folder, target, *options):
        arrays = [random.integers(np.iinfo(t).min, np.iinfo(t).max, shape, t, endpoint=True)
                  if np.issubdtype(t, np.integer) else random.standard_normal(shape).astype(t)
                  for _, t, shape in reference_model.interface(part)[0]]
        for wanted, found in zip(reference_model.run(part, arrays, tmp_path), tool.run(part, arrays, tmp_path), strict=True):
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)
            else:
                np.testing.assert_array_equal(found, wanted)
    found = np.stack([tool.run(folder / "net.pte", [x.numpy()], tmp_path)[0] for x in inputs])
    return decibels(found, np.stack([module(x).detach().numpy() for x in inputs]))


# Each with the least gain in dB compared with int8 throughout. Where the 8 bits of the result decide, roundings
# elsewhere move that by about one, up or down.
SAME = -1.5
CASES = {
    "convolutional": [(["head: int16x8"], SAME), (["features.0: int16x8"], SAME), (["features.0.act: float"], SAME),
                      (["aten.add: float"], SAME), (["features: int8", "aten.softmax: int16x8"], 3), (["features: float"], SAME),
                      (["aten.cat: int16x8"], SAME), (["*: int16x8", "features: int8"], 3),
                      (["*: int16x8", "aten.conv2d: int8"], 3), (["features.2: int16x8", "head: float"], SAME)],
    "attention": [(["q: int16x8"], SAME), (["norm: int16x8"], SAME), (["aten.softmax: float"], SAME), (["norm: float"], SAME),
                  (["aten.add: int16x8"], 4), (["*: int16x8", "aten.matmul: int8"], 15), (["aten.linear: float"], SAME)],
}


def test_regions_of_other_precision(net, tool, tmp_path):
    # What widths bring by themselves: corrected biases help 8 bits more than 16.
    uncorrected = ("tosa-int", "--no-bias-correction")
    base = signals(net, tool, tmp_path, *uncorrected)
    for lines, least in CASES[net[0]]:
        found = signals(net, tool, tmp_path, *uncorrected, *overrides(*lines))
        assert found > base + least, (lines, base, found)


def test_vgf_computes_the_float_parts_itself(net, tool, tmp_path):
    lines = {"convolutional": ["features.0.act: float", "head: int16x8"], "attention": ["norm: float", "aten.softmax: float"]}
    base = signals(net, tool, tmp_path, "vgf", "--quantize", "int8")
    found = signals(net, tool, tmp_path, "vgf", "--quantize", "int8", *overrides(*lines[net[0]]))
    assert found > base + SAME
    assert len(list(net[3].glob("net*.tosa"))) == 1
    # Without a scheme the target computes floats, and integers where overrides ask for them.
    lines = {"convolutional": "neck: int16x8", "attention": "ff: int16x8"}
    assert signals(net, tool, tmp_path, "vgf", *overrides(lines[net[0]])) > 55


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_ethos_u_runs_both_widths(net, tool, tmp_path, target):
    lines = {"convolutional": ["features.0: int16x8", "head: float"], "attention": ["aten.add: int16x8", "ff.1: int16x8"]}
    assert signals(net, tool, tmp_path, target, *overrides(*lines[net[0]])) > {"convolutional": 50, "attention": 38}[net[0]]


def test_what_a_target_cannot_do_is_refused(net, tool):
    name, _, _, folder = net
    if name != "attention":
        pytest.skip("the other net has no matrix product")
    done = subprocess.run([tool.path, "compile", folder / "net.pt2", "-t", "ethos-u55-128", "-o", folder / "net.pte",
                           *overrides("aten.matmul: int16x8")], capture_output=True, text=True)
    assert done.returncode == 1
    for word in ("plan.refused", "'aten.matmul: int16x8'", "i16 operands; i8 is taken", "'matmul: int8'"):
        assert word in done.stderr


# An int16x8 convolution before an int8 one: other converters lose the requantisation between them.
def test_a_convolution_of_each_width(tool, tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3)).eval()
    x = torch.randn(8, 1, 3, 10, 10)
    torch.export.save(torch.export.export(module, (x[0],)), tmp_path / "net.pt2")
    np.savez(tmp_path / "samples.npz", input=x.numpy())
    for lines, codes in ((["0: int16x8"], "i16"), (["1: int16x8", "0: int8"], "i8")):
        said = tool("compile", tmp_path / "net.pt2", "--calibrate", tmp_path / "samples.npz", "-o", tmp_path / "net.pte",
                    "--print-after", "quantise", *overrides(*lines))
        first = next(line for line in said.splitlines() if line.startswith("  %conv2d:"))
        assert f"x{codes}<" in first
        found = tool.run(tmp_path / "net.pte", [x[1].numpy()], tmp_path)[0]
        assert decibels(found, module(x[1]).detach().numpy()) > 30


# A printed plan, read again, gives the same program; so do overrides, and the plan that they make.
@pytest.mark.parametrize("options", [[], ["--quantize", "int16x8"], ["--weights", "per-tensor"],
                                     ["--override", "aten.softmax: float"], ["--override", "*: int16x8"]])
def test_a_printed_plan_is_read_back(net, tool, options):
    name, _, _, folder = net
    printed = tool("explain", folder / "net.pt2", "--plan", *options)
    (folder / "net.plan").write_text(printed)
    calibrated = ["compile", folder / "net.pt2", "--calibrate", folder / "samples.npz", "-o"]
    tool(*calibrated, folder / "direct.pte", *options)
    tool(*calibrated, folder / "planned.pte", "--plan", folder / "net.plan")
    assert (folder / "direct.pte").read_bytes() == (folder / "planned.pte").read_bytes()


# The same of whole models, whose samples widen tensors and scale rows (tiny_vit).
def test_a_model_by_its_plan(model, tool, tmp_path):
    (tmp_path / "plan").write_text(tool("explain", model.program("raw"), "--plan"))
    for name, options in (("direct", []), ("planned", ["--plan", tmp_path / "plan"])):
        tool("compile", model.program("raw"), "--calibrate", model.samples, "-o", tmp_path / f"{name}.pte", *options)
    assert (tmp_path / "direct.pte").read_bytes() == (tmp_path / "planned.pte").read_bytes()


# An edited line says what an override would.
def test_an_edited_plan(net, tool):
    name, _, _, folder = net
    call, line = {"convolutional": ("linear", "head: int16x8"), "attention": ("linear", "q: int16x8")}[name]
    plan = tool("explain", folder / "net.pt2", "--plan", *overrides(line))
    usual = tool("explain", folder / "net.pt2", "--plan")
    edited = []
    for before, after in zip(usual.splitlines(), plan.splitlines(), strict=True):
        edited.append(after if before != after else before)
    assert sum(a != b for a, b in zip(usual.splitlines(), edited)) >= 2
    (folder / "edited.plan").write_text("\n".join(edited) + "\n")
    calibrated = ["compile", folder / "net.pt2", "--calibrate", folder / "samples.npz", "-o"]
    tool(*calibrated, folder / "override.pte", *overrides(line))
    tool(*calibrated, folder / "edited.pte", "--plan", folder / "edited.plan")
    assert (folder / "override.pte").read_bytes() == (folder / "edited.pte").read_bytes()
