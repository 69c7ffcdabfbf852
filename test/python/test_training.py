# SPDX-License-Identifier: Apache-2.0
"""Training with quantisation, from `prepare_qat_pt2e` to a compiled artifact: batch norms after linear layers, an example."""
import pathlib
import re
import runpy
import sys

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e import disable_observer, move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

import tosaic
from tosaic.executorch.quantizer import NodeTargetNodeFinder, TOSAQuantizer, get_symmetric_quantization_config

QAT = get_symmetric_quantization_config(is_qat=True)


def snr(wanted, got):
    return (10 * torch.log10((wanted**2).sum() / ((wanted - got) ** 2).sum())).item()


def outside(artifact):
    """What no delegate has, but for the conversions of what the program takes and gives."""
    return [n.op for n in artifact.summary.nodes if not n.taken and not n.op.startswith("quantized_decomposed.")]


def exported(model, x):
    return torch.export.export(model.train(), (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)).module()


def rows():
    """Rows, and what is to be learnt of them."""
    x = torch.randn(256, 12, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.2, 3, 12)
    return x, torch.tanh(x[:, :4] + x[:, 4:8]) * x[:, 8:]


def perceptron():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 24, bias=False), nn.BatchNorm1d(24),
                          nn.ReLU(), nn.Linear(24, 4))
    with torch.no_grad():
        model[1].weight[3] = -0.5  # a batch norm may turn a channel round
    return model


def fit(model, x, y, steps):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.by_turns(2)
def test_batch_norms_after_linear_layers_are_folded():
    """torchao's issue 4463."""
    x, y = rows()
    prepared = prepare_qat_pt2e(exported(perceptron(), x[:2]), TOSAQuantizer("tosa-int").set_global(QAT))
    first = fit(prepared, x, y, 1)
    mean = prepared.get_buffer("1.running_mean").clone()
    assert fit(prepared, x, y, 60) < first / 2
    assert not torch.equal(mean, prepared.get_buffer("1.running_mean"))  # statistics are learnt
    move_exported_model_to_eval(prepared)
    prepared.apply(disable_observer)
    with torch.no_grad():
        trained = prepared(x)
        artifact = tosaic.compile(torch.export.export(convert_pt2e(prepared), (x[:1],)), target="tosa-int")
    assert outside(artifact) == [] and artifact.summary.delegates == 1
    got = torch.cat([artifact.run(row[None]) for row in x[:64]])
    assert snr(trained[:64], got) > 35
    # Integers as near as those that were not trained: the loss is what training left.
    assert ((got - y[:64]) ** 2).mean() < 1.2 * ((trained[:64] - y[:64]) ** 2).mean()


def annotated(model, quantizer):
    return quantizer.transform_for_annotation(exported(model, rows()[0][:2]))


def names(graph_module):
    return {n.name: str(n.target).removeprefix("aten.") for n in graph_module.graph.nodes if n.op == "call_function"}


def test_which_linear_layers_become_convolutions():
    for_all = names(annotated(perceptron(), TOSAQuantizer("tosa-int").set_global(QAT)))
    assert [for_all[n] for n in ("linear", "linear_1", "linear_2")] == ["conv1d.default", "conv1d.default", "linear.default"]
    assert "add_.Tensor" not in for_all.values()  # batches are not counted on the device
    part_float = names(annotated(perceptron(), TOSAQuantizer("tosa-int").set_global(QAT).set_module_name("0", None)))
    assert [part_float[n] for n in ("linear", "linear_1")] == ["linear.default", "conv1d.default"]
    without_training = get_symmetric_quantization_config()
    assert "conv1d.default" not in names(annotated(perceptron(), TOSAQuantizer("tosa-int").set_global(without_training))).values()
    model = perceptron()
    nn.init.zeros_(model[1].weight)  # torchao would divide by it
    assert names(annotated(model, TOSAQuantizer("tosa-int").set_global(QAT)))["linear"] == "linear.default"
    shared = nn.Sequential(model[0], model[1], nn.Linear(24, 24), nn.BatchNorm1d(24), nn.Linear(24, 24))
    shared[4].weight = shared[2].weight
    assert names(annotated(shared, TOSAQuantizer("tosa-int").set_global(QAT)))["linear_1"] == "linear.default"


def test_they_are_found_as_linear_layers():
    graph_module = annotated(perceptron(), TOSAQuantizer("tosa-int").set_global(QAT))
    found = NodeTargetNodeFinder(torch.ops.aten.linear.default).find_nodes(graph_module)
    assert [n.name for n in found] == ["linear", "linear_1", "linear_2"]


@pytest.mark.by_turns(2)  # minutes
def test_the_example(monkeypatch, capsys):
    """With weights of 4 bits training wins; in int8 nothing is left to win."""
    monkeypatch.setattr(sys, "argv", ["qat.py", "2"])  # where it wins most of three seeds
    runpy.run_path(str(pathlib.Path(__file__).parents[2] / "examples/qat/qat.py"), run_name="__main__")
    said = capsys.readouterr().out
    dB = [[float(x) for x in re.findall(r"([0-9.]+) dB", line)] for line in said.splitlines()]
    (in_float,), int8, (ptq, pt2e, qat) = dB
    assert in_float > 21 and min(int8) > in_float - 0.15, said
    assert qat > max(ptq, pt2e) + 0.05, said
