# SPDX-License-Identifier: Apache-2.0
"""tune: what it promises of accuracy and cost is what the compiled program has."""
import json

import numpy as np
import pytest
import torch

import tosaic


class Net(torch.nn.Module):
    """A residual stream whose sums lose most, as they span far more than what is added to them."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Conv2d(8, 8, 3, padding=1) for _ in range(4))
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = x * 4
        for block in self.blocks:
            y = y + torch.relu(block(y)) * 0.3
        return self.head(y.mean((2, 3)))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(5)
    return Net().eval(), [torch.randn(1, 8, 12, 12) for _ in range(8)]


def snr(model, artifact, samples):
    with torch.no_grad():
        wanted = np.concatenate([model(x).numpy().ravel() for x in samples]).astype(np.float64)
    got = np.concatenate([artifact.run(x).numpy().ravel() for x in samples]).astype(np.float64)
    return 10 * np.log10((wanted**2).sum() / ((got - wanted)**2).sum())


def test_accuracy_is_met_as_cheaply_as_found(net):
    model, samples = net
    int8 = snr(model, tosaic.compile(model, samples[0], calibration=samples), samples)
    wanted = int8 + 6
    tuning = tosaic.tune(model, samples[0], budget=f"snr>={wanted:.2f}", calibration=samples)
    assert tuning.met and tuning.unit == "bytes"
    assert tuning.points[0] == {"tensors": [], "calls": 0, "snr_db": pytest.approx(int8, abs=0.01), "cost": tuning.points[0]["cost"], "ratio": 1}
    artifact = tosaic.compile(model, samples[0], calibration=samples, override=tuning.overrides)
    reached = snr(model, artifact, samples)
    assert reached == pytest.approx(tuning.chosen["snr_db"], abs=0.01) and reached >= wanted - 0.01
    assert all(p["snr_db"] < wanted for p in tuning.points if p["cost"] < tuning.chosen["cost"])
    assert sum(tensor["noise"] for tensor in tuning.order) <= 1.0001


def test_a_cost_is_kept_and_its_best_is_chosen(net, tmp_path):
    model, samples = net
    tuning = tosaic.tune(model, samples[0], budget="bytes<=1.3x", calibration=iter(samples))
    assert tuning.met and 1 < tuning.chosen["ratio"] <= 1.3
    assert tuning.chosen["snr_db"] == max(p["snr_db"] for p in tuning.points if p["ratio"] <= 1.3)
    tuning.save(tmp_path / "net.plan")
    by_file = tosaic.compile(model, samples[0], calibration=samples, plan=tmp_path / "net.plan")
    by_list = tosaic.compile(model, samples[0], calibration=samples, override=tuning.overrides)
    assert by_file.pte == by_list.pte
    assert json.loads(tuning.json())["plan"] == (tmp_path / "net.plan").read_text()


def test_what_cannot_be_met_says_what_comes_nearest(net):
    model, samples = net
    tuning = tosaic.tune(model, samples[0], budget="snr>=200", calibration=samples)
    assert not tuning.met
    assert tuning.chosen["snr_db"] == max(p["snr_db"] for p in tuning.points)


def test_without_a_budget_it_is_a_table(net):
    model, samples = net
    tuning = tosaic.tune(model, samples[0], calibration=samples)
    assert tuning.overrides == [] and sorted(len(p["tensors"]) for p in tuning.points)[:4] == [0, 1, 2, 4]
    assert max(len(p["tensors"]) for p in tuning.points) == len(tuning.order)
    assert "16-bit calls" in repr(tuning)


def test_vela_estimates_the_cycles(net):
    model, samples = net
    target = "ethos-u85-256"
    tuning = tosaic.tune(model, samples[0], target, budget="cycles<=1.2x", calibration=samples)
    assert tuning.unit == "cycles" and tuning.met
    artifact = tosaic.compile(model, samples[0], target, calibration=samples, override=tuning.overrides)
    assert sum(e.cycles for e in artifact.summary.estimates) == pytest.approx(tuning.chosen["cost"])
    assert snr(model, artifact, samples) == pytest.approx(tuning.chosen["snr_db"], abs=0.01)


@pytest.mark.parametrize("target, options, budget, code", [
    ("tosa-int", {}, "fast", "tune.budget"), ("tosa-int", {}, "cycles<=0.5x", "tune.budget"), ("tosa-int", {}, "snr>=x", "tune.budget"),
    ("tosa-int", {}, "cycles<=1.1x", "tune.unit"), ("tosa-int", {"quantize": "int16x8"}, "snr>=30", "tune.scheme"),
    ("tosa-int", {"tosa_spec": "TOSA-1.0+INT"}, "snr>=30", "tune.no-int16"), ("tosa-fp", {}, "snr>=30", "compare.floats")])
def test_refusals(net, target, options, budget, code):
    model, samples = net
    with pytest.raises(tosaic.Error) as refused:
        tosaic.tune(model, samples[0], target, budget=budget, calibration=samples, **options)
    assert refused.value.code == code and refused.value.help
