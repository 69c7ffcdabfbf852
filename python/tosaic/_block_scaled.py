# SPDX-License-Identifier: Apache-2.0
"""torchao's block-scaled weights (MXTensor), whose arithmetic torch.export cannot follow, as calls that it can."""

from __future__ import annotations

import functools
from typing import Any

SCHEMA = ("mxfp_linear(Tensor input, Tensor weight_qdata, Tensor weight_scale, Tensor? bias=None, SymInt block_size=32, "
          "str weight_payload_dtype='') -> Tensor")


def is_block_scaled(tensor: Any) -> bool:
    return type(tensor).__name__ == "MXTensor" and type(tensor).__module__.startswith("torchao.")


def replace_linears(module):
    """Puts a call of `torch.ops.tosaic.mxfp_linear` where a linear layer of `module`, which is changed, has such a weight.
    Others stay: of another rounding of activations than TOSA's, or of a class with a forward of its own."""
    if _is_tosas(module):
        return _linear(module)
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if _is_tosas(child):
                setattr(parent, name, _linear(child))
    return module


def _is_tosas(layer: Any) -> bool:
    import torch

    if not isinstance(layer, torch.nn.Linear) or type(layer).forward is not torch.nn.Linear.forward:
        return False
    weight = layer.weight
    how = getattr(weight, "act_quant_kwargs", None)
    return (is_block_scaled(weight) and how is not None and how.elem_dtype == weight.elem_dtype
            and how.block_size == weight.block_size == 32 and how.scaling_mode.name == "RCEIL"
            and weight.elem_dtype in _names())


@functools.cache
def _names() -> dict[Any, str]:
    import torch
    from torchao.prototype.mx_formats import mx_tensor

    return {torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2", torch.float4_e2m1fn_x2: "f4e2m1",
            mx_tensor.DTYPE_FP6_E2M3: "fp6e2m3", mx_tensor.DTYPE_FP6_E3M2: "fp6e3m2"}


@functools.cache
def _library():
    import torch

    library = torch.library.Library("tosaic", "FRAGMENT")
    library.define(SCHEMA)
    library.impl("mxfp_linear", _computed, "CPU")
    torch.library.register_fake("tosaic::mxfp_linear", _typed, lib=library)
    return library


def _typed(input, weight_qdata, weight_scale, bias=None, block_size=32, weight_payload_dtype=""):
    import torch

    return input.new_empty((*input.shape[:-1], weight_qdata.shape[1]), dtype=torch.float32)


def _computed(input, weight_qdata, weight_scale, bias=None, block_size=32, weight_payload_dtype=""):
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx

    element = {name: dtype for dtype, name in _names().items()}[weight_payload_dtype]
    scale, data = to_mx(input.float().contiguous(), element, block_size, ScaleCalculationMode.RCEIL)
    x = to_dtype(data, scale, element, block_size, torch.float32)
    weight = to_dtype(weight_qdata, weight_scale, element, block_size, torch.float32)
    return torch.nn.functional.linear(x, weight[0], None if bias is None else bias.float())


def _linear(layer):
    import torch
    from torchao.prototype.mx_formats.utils import from_blocked

    _library()

    class BlockScaledLinear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            weight = layer.weight
            rows, columns = weight.shape
            scale = from_blocked(weight.scale, rows, columns // 32) if weight.is_swizzled_scales else weight.scale
            self.register_buffer("weight_qdata", weight.qdata.detach().contiguous()[None])
            self.register_buffer("weight_scale", scale.detach().reshape(1, rows, columns // 32).contiguous())
            self.bias = layer.bias
            self.element, self.dtype = _names()[weight.elem_dtype], weight.dtype

        def forward(self, x):
            bias = None if self.bias is None else self.bias.float()
            y = torch.ops.tosaic.mxfp_linear(x, self.weight_qdata, self.weight_scale, bias, 32, self.element)
            return y.to(self.dtype)

    return BlockScaledLinear()
