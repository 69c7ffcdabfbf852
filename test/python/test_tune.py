# SPDX-License-Identifier: Apache-2.0
"""tune: what it promises of accuracy and cost is what the compiled program has."""
import json
import warnings

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
    int8 = {"tensors": [], "calls": 0, "snr_db": pytest.approx(int8, abs=0.01), "top1": None, "ratio": 1}
    assert tuning.points[0] == int8 | {"cost": tuning.points[0]["cost"]}
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
    with pytest.warns(tosaic.CompileWarning, match="tune.missed"):
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


def test_a_budget_of_compile_is_what_tune_finds(net):
    model, samples = net
    tuning = tosaic.tune(model, samples[0], budget="bytes<=1.3x", calibration=samples)
    artifact = tosaic.compile(model, samples[0], budget="bytes<=1.3x", calibration=samples)
    assert artifact.pte == tosaic.compile(model, samples[0], calibration=samples, override=tuning.overrides).pte
    said = [d for d in artifact.summary.messages if d.code == "tune.chosen"]
    assert len(said) == 1 and f"with {tuning.chosen['calls']} calls in 16 bits" in said[0].message
    layers = artifact.compare().layers
    assert {layer["type"] for layer in layers} >= {"i8", "i16"}, "compare is about another program"


def test_a_budget_of_compile_that_cannot_be_met(net):
    model, samples = net
    with pytest.warns(tosaic.CompileWarning, match="tune.missed.*no plan meets 'snr >= 200'"):
        artifact = tosaic.compile(model, samples[0], budget="snr >= 200", calibration=iter(samples))
    assert snr(model, artifact, samples) > 55  # what comes nearest


def test_a_question_has_no_samples_for_a_budget(net):
    model, samples = net
    for ask in (tosaic.explain, tosaic.plan, tosaic.supports):
        with pytest.raises(tosaic.Error) as refused:
            ask(model, samples[0], budget="snr>=30")
        assert refused.value.code == "option.budget" and "tosaic tune" in refused.value.help


class Deep(torch.nn.Module):
    """Where a large value is clipped, all layers below clip it again."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Conv2d(4, 4, 3, padding=1) for _ in range(12))

    def forward(self, x):
        for layer in self.layers:
            x = x + 0.5 * torch.relu(layer(x))
        return x


def test_best_effort_tries_what_helps():
    torch.manual_seed(0)
    model = Deep().eval()

    def picture(share):
        large = (torch.rand(1, 1, 24, 24) < share) * 10.0
        return torch.randn(1, 4, 24, 24) * 0.4 + large
    samples = [picture(0.005 * (k % 4 > 1)) for k in range(16)]
    unseen = [picture(0.05) for _ in range(8)]
    compiled = {name: tosaic.compile(model, samples[0], calibration=samples, **options)
                for name, options in {"usual": {}, "best": {"effort": "best"}, "minmax": {"observer": "minmax"}}.items()}
    accuracy = {name: snr(model, artifact, unseen) for name, artifact in compiled.items()}
    assert accuracy["minmax"] > accuracy["usual"] + 1, "the samples do not show what this is about"
    assert accuracy["best"] > accuracy["usual"] + 1
    chosen = [d.message for d in compiled["best"].summary.messages if d.code == "calibrate.chosen"]
    assert chosen and "--observer minmax" in chosen[0]
    by_user = tosaic.compile(model, samples[0], calibration=samples, effort="best", observer="histogram", rounding="nearest")
    assert by_user.pte == compiled["usual"].pte


def test_little_effort_is_four_options(net):
    model, samples = net
    fast = tosaic.compile(model, samples[0], calibration=samples, effort="fast")
    options = {"observer": "minmax", "bias_correction": False, "equalization": False, "rounding": "nearest"}
    assert fast.pte == tosaic.compile(model, samples[0], calibration=samples, **options).pte
    observed = tosaic.compile(model, samples[0], calibration=samples, effort="fast", observer="histogram")
    assert observed.pte == tosaic.compile(model, samples[0], calibration=samples, **{**options, "observer": "histogram"}).pte


@pytest.fixture(scope="module")
def labelled(net):
    """Labels that floats have right for all but the last two of forty samples."""
    model, _ = net
    torch.manual_seed(6)
    samples = [torch.randn(1, 8, 12, 12) for _ in range(40)]
    with torch.no_grad():
        labels = torch.cat([model(x).argmax(1) for x in samples])
    labels[-2:] = (labels[-2:] + 1) % 5
    return samples, labels


def right(artifact, samples, labels):
    return 100 * float(np.mean([int(artifact.run(x).argmax()) == int(label) for x, label in zip(samples, labels)]))


def test_labels_count_right_answers(net, labelled):
    model, calibration = net
    samples, labels = labelled
    tuning = tosaic.tune(model, calibration[0], budget="top1>=float-0.5", calibration=calibration, samples=samples, labels=labels)
    assert tuning.top1_of_floats == 95 and tuning.chosen["top1"] >= 94.5 and tuning.met
    artifact = tosaic.compile(model, calibration[0], calibration=calibration, override=tuning.overrides)
    assert right(artifact, samples, labels) == pytest.approx(tuning.chosen["top1"])
    int8 = tosaic.compile(model, calibration[0], calibration=calibration)
    assert right(int8, samples, labels) == pytest.approx(tuning.points[0]["top1"])
    compared = int8.compare(samples, labels=labels.tolist())
    assert compared.top1 == {"labels": 40, "percent": pytest.approx(tuning.points[0]["top1"]), "percent_in_floats": 95}
    assert "of 40 labels, in floats 95.00 %" in repr(compared) and "95.00 % of the labels right" in repr(tuning)
    costly = tosaic.tune(model, calibration[0], budget="bytes<=1.5x", calibration=calibration, samples=samples, labels=labels)
    assert costly.chosen["top1"] == max(p["top1"] for p in costly.points if p["ratio"] <= 1.5)


def test_a_single_element_is_a_probability():
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Sigmoid())
    with torch.no_grad():
        model[0].weight.fill_(4.0)
    samples = [torch.tensor([[x]]) for x in (-1.0, -0.5, 0.5, 1.0)]
    compared = tosaic.compare(model, samples[0], calibration=samples, samples=samples, labels=[0, 1, 1, 1])
    assert compared.top1 == {"labels": 4, "percent": 75, "percent_in_floats": 75}


@pytest.mark.parametrize("labels, message", [
    ([1] * 39, "39 labels for 40 samples"), ([1] * 80, "each sample has 2 labels, and its first output is 1x5xf32: 1 row"),
    (torch.ones(40), "no integers"), ("cat", "no integers")])
def test_labels_that_do_not_fit(net, labelled, labels, message):
    model, calibration = net
    with pytest.raises(tosaic.Error, match=message) as refused:
        tosaic.compare(model, calibration[0], calibration=calibration, samples=labelled[0], labels=labels)
    assert refused.value.code == "compare.labels" and refused.value.help


def test_a_budget_of_right_answers_takes_labels(net):
    model, samples = net
    for ask in (tosaic.tune, tosaic.compile):
        with pytest.raises(tosaic.Error) as refused:
            ask(model, samples[0], budget="top1>=99", calibration=samples)
        assert refused.value.code == "tune.labels" and "labels=" in refused.value.help


def test_a_plan_of_another_program(net, tmp_path):
    model, samples = net
    tosaic.tune(model, samples[0], budget="bytes<=1.3x", calibration=samples).save(tmp_path / "net.plan")

    class Longer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return torch.tanh(self.inner(x))
    with pytest.warns(tosaic.CompileWarning, match="plan.not-this-program"):
        tosaic.compile(Longer().eval(), samples[0], calibration=samples, plan=tmp_path / "net.plan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tosaic.compile(model, samples[0], calibration=samples, plan=tmp_path / "net.plan")


def test_best_effort_where_nothing_is_lost():
    samples = [torch.ones(1, 4) * k for k in range(6)]
    artifact = tosaic.compile(torch.nn.Flatten(), samples[0], calibration=samples, effort="best", io="quantized")
    assert not [d for d in artifact.summary.messages if d.code == "calibrate.chosen"]
