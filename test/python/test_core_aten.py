# SPDX-License-Identifier: Apache-2.0
"""PyTorch's core ATen operators, as this version tags them: each has a lowering, or a reason here why it has none."""

import pytest
import tosaic
import torch
from functions import Of

TRAINING = "a gradient: programs for training are refused"
COMPLEX = "gives or takes complex numbers: said in real operators before there are lowerings (test_complex.py)"
NUMBERS = "a number and no tensor: the program's reader takes it"
WITHOUT = {
    "_adaptive_avg_pool2d_backward.default": TRAINING,
    "_fft_c2r.default": COMPLEX,
    "_fft_r2c.default": COMPLEX,
    "_local_scalar_dense.default": NUMBERS,
    "avg_pool2d_backward.default": TRAINING,
    "convolution_backward.default": TRAINING,
    "embedding_dense_backward.default": TRAINING,
    "max_pool2d_with_indices_backward.default": TRAINING,
    "native_group_norm_backward.default": TRAINING,
    "native_layer_norm_backward.default": TRAINING,
    "nonzero.default": "how many rows it gives follows from the numbers in its operand",
    "resize_.default": "changes a tensor's size in place",
    "sym_is_contiguous.default": NUMBERS,
    "sym_numel.default": NUMBERS,
    "sym_size.int": NUMBERS,
    "sym_storage_offset.default": NUMBERS,
    "sym_stride.int": NUMBERS,
}  # fmt: skip


def core_operators():
    for registered in torch._C._dispatch_get_all_op_names():
        library, _, name = registered.partition("::")
        name, _, overload = name.partition(".")
        if library == "aten" and overload != "out":
            overload = overload or "default"
            if torch.Tag.core in getattr(getattr(torch.ops.aten, name), overload).tags:
                yield f"{name}.{overload}"


def test_each_has_a_lowering_or_a_reason():
    schemas = {schema.split("(")[0] for operator in tosaic.operators() for schema in operator.schemas}
    known = {schema if "." in schema else f"{schema}.default" for schema in schemas}
    core = set(core_operators())
    assert len(core) > 180
    assert core - known == set(WITHOUT)


def test_the_tool_says_why(tmp_path):
    """Compiling what has no lowering names the reason, not only the operator."""
    calls = {
        "aten.training": lambda x: torch.ops.aten.avg_pool2d_backward(x[..., ::2, ::2], x, [2, 2], [2, 2], [0, 0], False, True, None),
        "aten.resized": lambda x: x.clone().resize_(2, 2),
    }
    for code, function in calls.items():
        exported = torch.export.export(Of(function), (torch.randn(1, 2, 4, 4),), strict=False)
        with pytest.raises(tosaic.Error, match=code):
            tosaic.compile(exported, target="tosa-fp")
