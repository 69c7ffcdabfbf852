# SPDX-License-Identifier: Apache-2.0
"""How far integer programs may be from floats, in their own unit: a step is the distance of neighbouring quantised values."""
import torch


def step(*tensors):
    """Of int8 values whose range is that of the tensors, and has 0."""
    lowest = min(0.0, *(float(t.min()) for t in tensors))
    return (max(0.0, *(float(t.max()) for t in tensors)) - lowest) / 255


def step_of(module):
    """The largest of a module or program that PT2E converted."""
    return max(n.args[1] for n in module.graph.nodes if "quantize_per_tensor.default" in str(n.target))


def assert_within(steps, got, wanted, of=None):
    """No element of `got` is further than `steps` times `of` from `wanted`; `of` is by default a step of what is wanted."""
    torch.testing.assert_close(got, wanted, rtol=0, atol=steps * (of or step(wanted)))
