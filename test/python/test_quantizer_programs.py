# SPDX-License-Identifier: Apache-2.0
"""Programs that PT2E's flow has trouble with: numbers among the arguments, and writes to views, which its conversions would
turn into writes to copies."""
import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from steps import assert_within

import tosaic
from tosaic.executorch import (TOSAPartitioner, TOSAQuantizer, TosaCompileSpec, get_symmetric_a16w8_quantization_config,
                               get_symmetric_quantization_config)

pytestmark = pytest.mark.by_turns(2)

SPEC = TosaCompileSpec("TOSA-1.0+INT")


def quantised(module, inputs, samples=(), spec=SPEC, config=None):
    program = torch.export.export(module.eval(), inputs)
    config = config or get_symmetric_quantization_config()
    prepared = prepare_pt2e(program.module(), TOSAQuantizer(spec).set_global(config))
    for sample in samples or [inputs]:
        prepared(*[x.clone() if isinstance(x, torch.Tensor) else x for x in sample])
    return torch.export.export(convert_pt2e(prepared), inputs)


def decibels(wanted, got):
    return (10 * torch.log10((wanted**2).sum() / ((wanted - got) ** 2).sum())).item()


def leaves(x):
    return [t for t in torch.utils._pytree.tree_leaves(x) if isinstance(t, torch.Tensor)]


# ---- numbers


class Scaled(nn.Module):
    def forward(self, x, factor, *, shift=0.0, name=None, on=True):
        y = x * factor + shift
        return (y.relu() if on else y), name, factor


@pytest.mark.parametrize("factor", [2, 0.5, True])
def test_a_module_that_takes_numbers(factor):
    x = torch.randn(2, 8)
    module = Scaled().eval()
    program = torch.export.export(module, (x, factor), {"shift": 0.25, "name": "a", "on": True})
    quantizer = TOSAQuantizer(SPEC).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(program.module(), quantizer)
    prepared(x, factor, shift=0.25, name="a", on=True)
    converted = convert_pt2e(prepared)
    codes = [n for n in converted.graph.nodes if "quantize_per_tensor" in str(n.target)]
    assert len(codes) >= 4
    wanted, got = module(x, factor, shift=0.25, name="a"), converted(x, factor, shift=0.25, name="a", on=True)
    assert got[1:] == wanted[1:] and decibels(wanted[0], got[0]) > 30


class Sliced(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    def forward(self, x, length: int):
        return self.table[:, :length] + x


def test_a_length_among_the_arguments_is_delegated():
    inputs = (torch.randn(2, 2), 2)
    edge = to_edge_transform_and_lower(quantised(Sliced(), inputs), partitioner=[TOSAPartitioner(SPEC)])
    targets = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in t for t in targets) == 1 and not any("aten" in t for t in targets), targets
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(*inputs)
    assert_within(2, got, Sliced()(*inputs))


@pytest.mark.parametrize("function", [lambda x: x * 2, lambda x: 2 * x, lambda x: x + 0.5, lambda x: 0.5 - x, lambda x: x / 4,
                                      lambda x: torch.maximum(x, x * 0.25), lambda x: (x * 2) @ (x + 1).t()])
def test_an_input_that_meets_a_number_first_is_quantised(function):
    class First(nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.randn(4, 6)
    program = quantised(First(), (x,))
    assert all("quantize_per_tensor" in str(user.target) for node in program.graph.nodes if node.op == "placeholder"
               for user in node.users)
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(SPEC)])
    targets = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in t for t in targets) == 1 and not any("aten" in t for t in targets), targets
    assert decibels(function(x), tosaic.load(bytes(edge.to_executorch().buffer)).run(x)) > 25


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integers_that_meet_floats(dtype):
    class Adds(nn.Module):
        def forward(self, x, y):
            return x + torch.arange(10, dtype=torch.float32).reshape(2, 5).unsqueeze(-1), y * x

    inputs = torch.randint(0, 10, (2, 5, 3)).to(dtype), torch.randn(2, 5, 3)
    program = quantised(Adds(), inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(SPEC)])
    targets = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in t for t in targets) >= 1 and not any("aten.add" in t or "aten.mul" in t for t in targets)
    for wanted, got in zip(Adds()(*inputs), tosaic.load(bytes(edge.to_executorch().buffer)).run(*inputs), strict=True):
        assert decibels(wanted, got) > 30


# ---- writes


class EverySecond(nn.Module):
    def forward(self, x):
        y = torch.relu(x).clone()
        y[:, ::2] = x[:, ::2] * 3
        return y + 1


class ThroughTwoViews(nn.Module):
    def forward(self, x):
        y = x * 2
        row, turned = y[0], y.t()
        row.add_(1)
        turned[1].mul_(3)
        return y * 0.5, row + 0.25, turned * 2


class Flattened(nn.Module):
    def forward(self, x):
        y = x * 2
        y.add_(1)
        flat = y.view(-1)
        flat[3:5] = 0
        y.relu_()
        return flat * 3


class Squeezed(nn.Module):
    def forward(self, x):
        y = x * 2
        u = y.unsqueeze(0)
        u.squeeze(0)[0] = x[1]
        y[:, -1] = y[:, 0]
        return u + y


class Broadcast(nn.Module):
    def forward(self, x):
        y = x + 1
        y[1:, 2:4] = x[0, 0]
        return y.permute(1, 0) * 2


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv1d(4, 4, 1), nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.act(self.conv(x[None]))
        y += x
        return y


@pytest.mark.parametrize("module", [EverySecond, ThroughTwoViews, Flattened, Squeezed, Broadcast, Residual])
@pytest.mark.parametrize("functional", [False, True], ids=["as exported", "decomposed"])
def test_writes_are_kept(module, functional):
    torch.manual_seed(0)
    module, x = module().eval(), torch.randn(4, 6)
    wanted = module(x.clone())
    if functional:  # what the help of a refusal says
        program = torch.export.export(module, (x,)).run_decompositions({})
        prepared = prepare_pt2e(program.module(), TOSAQuantizer(SPEC).set_global(get_symmetric_quantization_config()))
        prepared(x)
        program = torch.export.export(convert_pt2e(prepared), (x,))
    else:
        program = quantised(module, (x,))
    for a, b in zip(leaves(wanted), leaves(program.module()(x.clone())), strict=True):
        assert decibels(a, b) > 30
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(SPEC)])
    for a, b in zip(leaves(wanted), leaves(tosaic.load(bytes(edge.to_executorch().buffer)).run(x)), strict=True):
        assert decibels(a, b) > 30


def test_what_cannot_be_made_functional_is_refused():
    class OfDiagonal(nn.Module):
        def forward(self, x):
            y = x * 2
            y.diagonal().add_(1)
            return y * 3

    with pytest.raises(tosaic.Error, match=r"y\.diagonal\(\)\.add_\(1\)") as refused:
        quantised(OfDiagonal(), (torch.randn(4, 4),))
    assert refused.value.code == "quantizer.write" and "run_decompositions" in refused.value.help


def test_a_write_to_an_input_is_told():
    class Adds(nn.Module):
        def forward(self, x):
            x.add_(1)
            return x * 2

    x = torch.randn(2, 4)
    with pytest.warns(tosaic.CompileWarning, match="writes to its input 'x'"):
        program = quantised(Adds(), (x,))
    assert decibels((x + 1) * 2, program.module()(x.clone())) > 30


# ---- calls that tosaic folds into layers, which PT2E quantises by themselves


class Affine(nn.Module):
    """A norm after an activation, and a frozen one behind a layer, written as a product and a sum."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 10)
        self.register_buffer("gain", torch.rand(10) + 0.5)
        self.register_buffer("offset", torch.randn(10))
        nn.init.uniform_(self.norm.running_var, 0.5, 2)
        nn.init.normal_(self.norm.running_mean)

    def forward(self, x):
        return torch.relu(self.last(self.norm(torch.relu(self.first(x)))) * self.gain + self.offset)


def test_what_is_folded_elsewhere_is_quantised():
    torch.manual_seed(0)
    module, samples = Affine().eval(), [(torch.randn(32, 16),) for _ in range(8)]
    artifact = tosaic.compile(quantised(module, samples[0], samples), target="tosa-int")
    assert artifact.summary.delegates == 1 and "batch_norm" not in str(artifact.summary)
    assert decibels(module(*samples[1]), artifact.run(*samples[1])) > 30


class Energies(nn.Module):
    """Logarithms of numbers next to 0, where a table of 16 bits has too few knots."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x):
        y = self.first(x)
        return self.last(torch.log(y * y + 1e-6))


def test_functions_of_16_bits_are_what_pt2e_computes():
    torch.manual_seed(0)
    samples = [(torch.randn(8, 16),) for _ in range(16)]
    program = quantised(Energies(), samples[0], samples, TosaCompileSpec("TOSA-1.0+INT+int16"),
                        get_symmetric_a16w8_quantization_config())
    assert decibels(program.module()(*samples[3]), tosaic.compile(program, target="tosa-int").run(*samples[3])) > 45
