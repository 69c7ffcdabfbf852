# SPDX-License-Identifier: Apache-2.0
"""Programs whose sizes vary in ExecuTorch's flow: a delegate that takes any size has them, others leave them outside with
a reason."""
import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torch.export import Dim

import tosaic
from tosaic.executorch import TosaCompileSpec, TOSAPartitioner, VgfCompileSpec, VgfPartitioner, VulkanPartitioner

pytestmark = pytest.mark.filterwarnings("ignore")


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class Partly(nn.Module):
    """An operator in the middle that no delegate takes."""

    def forward(self, x):
        return torch.tanh(torch.cumsum((x.relu() + 1).double(), -1).float())


def lowered(module, partitioner):
    program = torch.export.export(module.eval(), (torch.randn(4, 8),), dynamic_shapes=({0: Dim("batch", min=1, max=8)},))
    return to_edge_transform_and_lower(program, partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))


def delegates(edge):
    return sum("executorch_call_delegate" in str(n.target) for n in edge.exported_program().graph.nodes)


@pytest.mark.parametrize("module, count", [(Layers, 1), (Partly, 2)])
def test_vulkan_takes_any_size(module, count):
    module = module().eval()
    edge = lowered(module, VulkanPartitioner())
    assert delegates(edge) == count
    session = tosaic.load(bytes(edge.to_executorch().buffer))
    for rows in (2, 4, 8, 3) if count == 1 else ():  # what stands between delegates is ExecuTorch's to run
        x = torch.randn(rows, 8)
        torch.testing.assert_close(session.run(x), module(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("partitioner", [TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")), VgfPartitioner(VgfCompileSpec())])
def test_others_leave_it_outside(partitioner):
    edge = lowered(Layers(), partitioner)
    assert delegates(edge) == 0
    assert all("many sizes" in why for why in partitioner.refused.values()) and partitioner.refused
