# SPDX-License-Identifier: Apache-2.0
"""Weights beyond 128 MiB, what every Vulkan device binds: a table of tokens and the layer that shares it."""

import copy

import pytest
import torch
import tosaic
from torch import nn
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.utils import unwrap_tensor_subclass

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS, WIDTH = 36_000, 960  # 138 MB in floats


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.table(tokens)))


@pytest.fixture(scope="module")
def tied():
    torch.manual_seed(0)
    module, tokens = Tied().eval(), torch.tensor([[0, TOKENS - 1, 17_999, 18_000]])
    return module, torch.export.export(module, (tokens,)), tokens


def check(found, expected):
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.parametrize("scheme", [{}, {"weights": "int4"}, {"weights": "int8"}], ids=["f32", "int4", "int8"])
def test_the_device_takes_all_of_it(tied, scheme):
    module, program, tokens = tied
    whole = module(tokens) if not scheme else tosaic.compile(program, target="tosa-fp", **scheme).run(tokens)
    check(tosaic.compile(program, target="vulkan", require_full_delegation=True, **scheme).run(tokens), whole)


def test_torchaos_codes_are_cut_as_well(tied):
    module, _, tokens = tied
    module = copy.deepcopy(module)
    module.head.weight = nn.Parameter(module.head.weight.detach().clone())
    quantize_(module.head, IntxWeightOnlyConfig(torch.int8))
    unwrap_tensor_subclass(module)
    program = torch.export.export(module, (tokens,), strict=False)
    check(tosaic.compile(program, target="vulkan", require_full_delegation=True).run(tokens), module(tokens))


def test_a_program_runs_itself(tied):
    module, program, tokens = tied
    check(tosaic.Program.of(program).session(device="vulkan").run(tokens), module(tokens))
