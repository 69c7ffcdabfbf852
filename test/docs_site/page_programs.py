# SPDX-License-Identifier: Apache-2.0
"""Writes programs that pages speak of and the repository does not hold: page_programs.py NAME, in the current folder."""
import pathlib
import sys
import warnings

import numpy as np
import torch

warnings.filterwarnings("ignore")

# docs/ethos-u.md: a block with a branch on values, by lines.
NET = '''import torch


class Block(torch.nn.Module):
    """Keeps what is larger than 1."""

    def __init__(self):
        super().__init__()
        self.act = torch.nn.ReLU()

    def forward(self, x):
        mask = x > 1.0
        return torch.where(mask, x, self.act(x))
'''


class Cache(torch.nn.Module):
    """Keeps a row for each position, as the decoder of a language model does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(8, 32))
        self.embed = torch.nn.Embedding(16, 32)

    def forward(self, token, position):
        self.cache.index_copy_(0, position, self.embed(token))
        return self.cache.sum(0)


def export(model, inputs, name):
    torch.export.save(torch.export.export(model.eval(), inputs), name)


def caches():
    torch.manual_seed(0)
    model = Cache()
    export(model, (torch.zeros(4, dtype=torch.int64), torch.arange(4)), "prefill.pt2")
    for name in ("decode.pt2", "decoder.pt2"):
        export(model, (torch.zeros(1, dtype=torch.int64), torch.arange(1)), name)
    np.save("token.npy", np.zeros(1, np.int64))
    np.save("position.npy", np.zeros(1, np.int64))


def net():
    pathlib.Path("net.py").write_text(NET)  # where PyTorch looks for the lines
    scope = {}
    exec(compile(NET, "net.py", "exec"), scope)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = scope["Block"]()

        def forward(self, x):
            return self.block(x)

    export(Net(), (torch.randn(1, 8),), "net.pt2")


def vulkan_flow():
    """What ExecuTorch's own Vulkan partitioner writes."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import to_edge_transform_and_lower

    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU())
    edge = to_edge_transform_and_lower(torch.export.export(model.eval(), (torch.randn(1, 1, 8, 8),)), partitioner=[VulkanPartitioner()])
    pathlib.Path("model.pte").write_bytes(edge.to_executorch().buffer)


def bundle():
    """A program with a case, by ExecuTorch's own classes."""
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
    from executorch.exir import to_edge

    x = torch.from_numpy(np.load("x.npy")) if pathlib.Path("x.npy").exists() else torch.randn(1, 1, 8, 8)
    model = torch.nn.Sequential(torch.nn.ReLU())
    program = to_edge(torch.export.export(model, (x,))).to_executorch()
    suite = MethodTestSuite("forward", [MethodTestCase((x,), model(x))])
    pathlib.Path("model.bpte").write_bytes(serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [suite])))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
