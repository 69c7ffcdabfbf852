# SPDX-License-Identifier: Apache-2.0
"""Programs in ExecuTorch's own runtime."""
import torch
from executorch.runtime import Runtime, Verification


def load(path):
    return Runtime.get().load_program(path, verification=Verification.InternalConsistency)


def execute(path, inputs):
    outputs = load(path).load_method("forward").execute([torch.from_numpy(i) for i in inputs])
    return [o.numpy() for o in outputs]
