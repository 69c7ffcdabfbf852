# SPDX-License-Identifier: Apache-2.0
"""compare: its figures of the outputs are those that anybody computes from what the artifact gives."""
import json

import numpy as np
import pytest
import torch

import tosaic


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = torch.nn.functional.hardswish(self.norm(self.stem(x)))
        y = y * torch.sigmoid(y)
        return self.head(y.mean((2, 3))), torch.softmax(y.flatten(1)[:, :16], -1)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(3)
    model = Net().eval()
    return model, [torch.randn(1, 3, 12, 12) for _ in range(10)]


def snr(wanted, got):
    wanted, got = np.concatenate(wanted).astype(np.float64), np.concatenate(got).astype(np.float64)
    return 10 * np.log10((wanted**2).sum() / ((got - wanted)**2).sum())


def figures_of(model, artifact, samples):
    """The outputs' dB, with NumPy."""
    with torch.no_grad():
        wanted = [model(x) for x in samples]
    got = [artifact.run(x) for x in samples]
    return [snr([w[i].numpy().ravel() for w in wanted], [g[i].numpy().ravel() for g in got]) for i in range(len(wanted[0]))]


@pytest.mark.parametrize("target, options", [("tosa-int", {}), ("tosa-int", {"quantize": "int16x8"}), ("vgf", {"quantize": "int8"}),
                                             ("tosa-int", {"override": ["stem: float"]})])
def test_outputs_are_those_of_the_artifact(net, target, options):
    model, samples = net
    artifact = tosaic.compile(model, samples[0], target, calibration=samples, **options)
    found = artifact.compare()
    assert found.samples == 8
    assert [o["accumulated"]["snr_db"] for o in found.outputs] == pytest.approx(figures_of(model, artifact, samples[:8]), abs=0.01)
    others = [torch.randn(1, 3, 12, 12) for _ in range(3)]
    found = artifact.compare(others)
    assert found.samples == 3
    assert [o["accumulated"]["snr_db"] for o in found.outputs] == pytest.approx(figures_of(model, artifact, others), abs=0.01)


@pytest.mark.parametrize("options", [{"vulkan_tiers": "cpu"}, {"vulkan_tiers": "base"}, {"vulkan_tiers": "base", "vulkan_sums": "fp16"}])
def test_halves_are_those_of_the_device(net, options):
    """Sums have another order there, which moves a rounding now and then."""
    model, samples = net
    artifact = tosaic.compile(model, samples[0], "vulkan", vulkan_precision="fp16", **options)
    found = artifact.compare(samples)
    figures = [o["accumulated"]["snr_db"] for o in found.outputs]
    assert figures == pytest.approx(figures_of(model, artifact, samples), abs=0.3) and min(figures) < 90
    assert {r["type"] for r in found.layers} >= {"f16", "f32"}
    (stem,) = [r for r in found.layers if r["module"] == "stem"]
    assert stem["own"]["weights_snr_db"] >= stem["own"]["snr_db"] - 1 and stem["accumulated"]["worst_channel"]["dim"] == 1


class SeenInOtherShapes(torch.nn.Module):
    """What finishes a layer has the layer's shape, and what reads it another one."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(torch.sigmoid(self.first(x)).reshape(2, 8, 8, 8))
        return torch.tanh(self.second(y).reshape(4, 32, 8))


def test_halves_in_other_shapes_are_halves():
    torch.manual_seed(4)
    model, x = SeenInOtherShapes().eval(), torch.randn(2, 64, 16)
    artifact = tosaic.compile(model, (x,), target="vulkan", vulkan_precision="fp16")
    found = artifact.compare([x])
    types = {r["node"]: r["type"] for r in found.layers}
    assert types["relu"] == "f16" and types["sigmoid"] == "f32"  # which stays in the layer's dispatch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
def test_a_model_in_half_precision_is_held_against_f32(dtype, target):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).eval().to(dtype)
    samples = [torch.randn(4, 32).to(dtype) for _ in range(4)]
    artifact = tosaic.compile(model, samples[0], target)
    found = artifact.compare(samples)
    got = [torch.as_tensor(artifact.run(x)).float().numpy().ravel() for x in samples]
    narrow = [model(x).detach().float().numpy().ravel() for x in samples]
    wide = model.float()
    with torch.no_grad():
        wanted = [wide(x.float()).numpy().ravel() for x in samples]
    figure = found.outputs[0]["accumulated"]["snr_db"]
    assert figure == pytest.approx(snr(wanted, got), abs=0.3)
    assert figure > snr(wanted, narrow) - 1.5, "further from f32 than PyTorch's own half precision"
    assert {r["type"] for r in found.layers} == {"f16" if dtype == torch.float16 else "bf16"}


class Reaching(torch.nn.Module):
    """Beyond what f16 holds, in the middle."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(16, 32, bias=False), torch.nn.Linear(32, 4, bias=False)

    def forward(self, x):
        return self.last((self.first(x) * 3e5).cumsum(1) / 3e5)


def test_the_option_for_an_overflow_helps():
    torch.manual_seed(2)
    model, samples = Reaching().eval(), [torch.randn(2, 16) for _ in range(3)]
    how = dict(samples=samples, vulkan_precision="fp16")
    found = tosaic.compare(model, samples[0], "vulkan", **how)
    reasons = [reason for r in found.layers for reason in r["reasons"]]
    assert any(r["kind"] == "overflow" for r in reasons), found.text(0)
    assert found.outputs[0]["accumulated"]["snr_db"] is None and not found.outputs[0]["accumulated"]["exact"]
    names = sorted({r["remedy"].removeprefix("--vulkan-keep-f32 ") for r in reasons if r["kind"] == "overflow"})
    better = tosaic.compare(model, samples[0], "vulkan", vulkan_keep_f32=names, **how)
    assert better.outputs[0]["accumulated"]["snr_db"] > 60


def test_states_go_on_from_run_to_run():
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(1, 6))

        def forward(self, x):
            self.kept.mul_(0.75).add_(x * 0.25)
            return torch.tanh(self.kept * x)

    torch.manual_seed(0)
    samples = [torch.randn(1, 6) for _ in range(6)]
    artifact = tosaic.compile(Mean(), samples[0], calibration=samples)
    found = artifact.compare()
    module = Mean()
    with torch.no_grad():
        wanted = [module(x).numpy().ravel() for x in samples]
    got = [artifact.run(x).numpy().ravel() for x in samples]
    assert found.outputs[0]["accumulated"]["snr_db"] == pytest.approx(snr(wanted, got), abs=0.01)


def test_layers_are_named_and_the_worst_stands_first(net):
    model, samples = net
    found = tosaic.compare(model, samples[0], calibration=iter(samples), samples=samples[:2])
    own = [r["own"]["snr_db"] for r in found.layers if r["own"] and not r["own"]["exact"]]
    assert own == sorted(own) and len(own) > 4
    (stem,) = [r for r in found.layers if r["module"] == "stem"]
    assert stem["ops"][0] == "aten.conv2d.default" and stem["type"] == "i8" and ".py:" in stem["place"]
    assert stem["shape"] == [1, 8, 12, 12] and stem["accumulated"]["worst_channel"]["dim"] == 1
    assert stem["own"]["weights_snr_db"] >= stem["own"]["snr_db"] - 1
    assert json.loads(found.json())["layers"] == found.layers
    assert len(found.text(1).splitlines()) < len(found.text(0).splitlines())
    assert list(found.to_pandas()["node"]) == [r["node"] for r in found.layers]


def wide_channel():
    """One channel is 40 times as large as the others."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 1, bias=False), torch.nn.Conv2d(8, 4, 1, bias=False)).eval()
    with torch.no_grad():
        model[0].weight[5] *= 40
    return model, [torch.randn(1, 4, 6, 6) for _ in range(4)]


def test_a_remedy_can_be_pasted_and_helps():
    model, samples = wide_channel()
    found = tosaic.compare(model, samples[0], calibration=samples)
    (row,) = [r for r in found.layers if r["node"] == "conv2d"]
    (reason,) = [r for r in row["reasons"] if r["kind"] == "outlier-channel"]
    assert reason["sentence"].startswith("channel 5 ")
    option = reason["remedy"].removeprefix("--override ").strip("'")
    better = tosaic.compare(model, samples[0], calibration=samples, override=[option])
    (again,) = [r for r in better.layers if r["node"] == "conv2d"]
    assert again["type"] == "i16"
    worst = [r["accumulated"]["worst_channel"]["snr_db"] for r in (row, again)]
    assert worst[0] < 20 and worst[1] > worst[0] + 10


@pytest.mark.parametrize("arguments, code", [
    (dict(samples=[torch.zeros(1, 3, 5, 5)]), "calibrate.sample-type"),
    (dict(samples=[torch.zeros(1, 3, 12, 12, dtype=torch.int32)]), "calibrate.sample-type"),
    (dict(samples=[(torch.zeros(1, 3, 12, 12), torch.zeros(1))]), "calibrate.structure"),
    (dict(samples=[]), "calibrate.no-samples"),
    (dict(samples=[torch.full((1, 3, 12, 12), float("nan"))]), "compare.not-a-number"),
    (dict(target="tosa-fp"), "compare.floats"),
    (dict(target="vulkan"), "compare.floats"),
    (dict(target="vulkan", vulkan_precision="fp16", weights="int8"), "compare.floats"),
    (dict(target="tosa-imt"), "target.unknown"),
    (dict(override=["*: float"]), "compare.nothing-quantised"),
])  # fmt: skip
def test_what_cannot_be_compared_is_refused(net, arguments, code):
    model, samples = net
    with pytest.raises(tosaic.Error) as refused:
        tosaic.compare(model, samples[0], **{"calibration": samples, **arguments})
    assert refused.value.code == code and refused.value.help


def test_a_calibration_that_is_used_up_is_said(net):
    model, samples = net
    artifact = tosaic.compile(model, samples[0], calibration=iter(samples))
    with pytest.raises(tosaic.Error) as refused:
        artifact.compare()
    assert refused.value.code == "compare.calibration"


class Scores(torch.nn.Module):
    """Most scores are far below what a sigmoid tells from 0."""

    def __init__(self):
        super().__init__()
        self.hidden, self.scores = torch.nn.Linear(16, 32), torch.nn.Linear(32, 12)
        with torch.no_grad():
            self.scores.bias[:9] -= 400

    def forward(self, x):
        return torch.sigmoid(self.scores(torch.relu(self.hidden(x))))


class SharpAttention(torch.nn.Module):
    """Scores far below the largest, of which a softmax makes 0, and norms, for which the program is written anew."""

    def __init__(self):
        super().__init__()
        self.before, self.after = torch.nn.LayerNorm(16), torch.nn.LayerNorm(16)

    def forward(self, x):
        x = self.before(x)
        return self.after(x + torch.softmax(x @ x.transpose(-1, -2) * 12, -1) @ x)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("kind", [Scores, SharpAttention])
def test_what_saturates_on_purpose_is_no_loss(kind, scheme):
    torch.manual_seed(2)
    model, samples = kind().eval(), [torch.randn(8, 16) for _ in range(8)]
    found = tosaic.compare(model, samples[0], "tosa-int", calibration=samples, quantize=scheme)
    assert all(layer["own"]["snr_db"] > 25 for layer in found.layers if layer["own"] and layer["own"]["snr_db"] is not None)
    assert not any(reason["kind"] == "clipped" for layer in found.layers for reason in layer["reasons"])
