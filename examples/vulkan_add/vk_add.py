# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's first example for Vulkan, by the calls of its page, with tosaic's partitioner: a sum that a Vulkan device
computes as a whole, and a model of which it takes what stands around an operator that no shader computes.

    python examples/vulkan_add/vk_add.py            # writes vk_add.pte and vk_add_around.pte

Both run with `tosaic run vk_add.pte`, and in ExecuTorch's runtime with tosaic's plug-in (docs/executorch.md).
"""
import torch
from executorch.exir import to_edge
from torch.export import export

import tosaic
from tosaic.executorch import VulkanPartitioner


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class AddAround(torch.nn.Module):
    """In the middle something that no shader computes: double precision, which the CPU runs."""

    def forward(self, x, y):
        return (x + y).double().exp().float() * y + x


def main():
    for name, model in (("vk_add", Add()), ("vk_add_around", AddAround())):
        sample = (torch.randn(5), torch.randn(5))
        aten_dialect = export(model, sample)
        partitioner = VulkanPartitioner()
        edge_program = to_edge(aten_dialect).to_backend(partitioner)
        executorch_program = edge_program.to_executorch()
        with open(f"{name}.pte", "wb") as file:
            file.write(executorch_program.buffer)

        calls = [str(node.target) for node in edge_program.exported_program().graph.nodes if node.op == "call_function"]
        print(f"{name}: {sum('call_delegate' in call for call in calls)} delegates")
        for node, why in partitioner.refused.items():
            print(f"  {node} stays outside: {why}")
        session = tosaic.load(f"{name}.pte")
        torch.testing.assert_close(session.run(*sample), model(*sample))
        print(f"  {session.device} gives {[round(float(v), 4) for v in session.run(*sample)]}")


if __name__ == "__main__":
    main()
