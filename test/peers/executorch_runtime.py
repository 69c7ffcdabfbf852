# SPDX-License-Identifier: Apache-2.0
"""Functions as programs, and programs in ExecuTorch's own runtime."""
import torch
from executorch.runtime import Runtime, Verification
from torch import nn


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def load(path):
    return Runtime.get().load_program(path, verification=Verification.InternalConsistency)


def execute(path, inputs):
    outputs = load(path).load_method("forward").execute([torch.from_numpy(i) for i in inputs])
    return [o.numpy() for o in outputs]
