# SPDX-License-Identifier: Apache-2.0
"""Tensors across the boundary without a copy: PyTorch's, NumPy's, and whatever speaks DLPack.

The core takes a tensor as (address, dtype, sizes, strides in elements or None) and the caller keeps its memory; it
gives one as an object that speaks DLPack and looks at the core's memory.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ._errors import Error

Described = tuple[int, str, tuple[int, ...], "tuple[int, ...] | None"]

_NUMPY_NAMES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8ue8m0",
}  # fmt: skip
_THEIR_NAMES = {ours: name for name, ours in _NUMPY_NAMES.items()}
_torch_names: dict[Any, str] = {}


def torch_name(dtype) -> str:
    """"f32" of torch.float32."""
    if not _torch_names:
        import torch

        for name, ours in _NUMPY_NAMES.items():
            _torch_names[getattr(torch, name)] = ours
    try:
        return _torch_names[dtype]
    except KeyError:
        raise Error(code="tensor.dtype", message=f"tosaic has no tensors of {dtype}",
                    help=f"convert it to one of {', '.join(_NUMPY_NAMES)}") from None


def has_dtype(dtype) -> bool:
    """Are there tensors of a PyTorch dtype?"""
    try:
        return bool(torch_name(dtype))
    except Error:
        return False


def _without_mask(x) -> None:
    """Elements that are masked out have values beneath their mask: whatever was there before."""
    raise Error(code="tensor.masked", message=f"a {type(x).__qualname__} has masked elements, of which tosaic knows nothing",
                help="fill them: NumPy's array.filled(value), PyTorch's masked_tensor.to_tensor(value)")


def _of_torch(x) -> tuple[Described, Any]:
    if type(x).__name__ == "MaskedTensor" and not bool(x.get_mask().all()):
        _without_mask(x)
    if x.device.type != "cpu":
        raise Error(code="tensor.device", message=f"a tensor is on the device '{x.device}'; tosaic reads the CPU's memory",
                    help="give tensor.cpu()")
    if type(x).__name__ == "FakeTensor":
        raise Error(code="tensor.fake", message="a fake tensor has no values", help="give a real one")
    x = x.detach().resolve_neg()
    return (x.data_ptr(), torch_name(x.dtype), tuple(x.shape), x.stride()), x


def _of_numpy(x) -> tuple[Described, Any]:
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    name = _NUMPY_NAMES.get(x.dtype.name)
    if name is None:
        raise Error(code="tensor.dtype", message=f"tosaic has no tensors of {x.dtype}",
                    help=f"convert it to one of {', '.join(_NUMPY_NAMES)}")
    size = x.itemsize
    if any(s % size for s in x.strides):
        import numpy

        x = numpy.ascontiguousarray(x)
    strides = None if x.flags.c_contiguous else tuple(s // size for s in x.strides)
    return (x.ctypes.data, name, x.shape, strides), x


def describe(x) -> tuple[Described, Any]:
    """The description, and the object to keep alive while it is used."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _of_torch(x)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, (numpy.ndarray, numpy.generic)):
        if isinstance(x, numpy.ma.MaskedArray) and numpy.ma.is_masked(x):
            _without_mask(x)
        return _of_numpy(numpy.asarray(x))
    if hasattr(x, "__dlpack__"):
        import numpy

        try:
            return _of_numpy(numpy.from_dlpack(x))
        except (BufferError, TypeError, RuntimeError) as why:
            raise Error(code="tensor.dlpack", message=f"a {type(x).__qualname__} cannot be read: {why}",
                        help="give a tensor in the CPU's memory") from why
    raise Error(code="tensor.kind", message=f"a {type(x).__qualname__} is no tensor",
                help="give a torch.Tensor, a NumPy array or an object that speaks DLPack")


def number(value, dtype: str, rank: int) -> tuple[Described, Any]:
    """A Python number for an input that is a tensor without dims."""
    if rank != 0:
        raise Error(code="run.input-type", message=f"the number {value!r} is given for a tensor of {rank} dims",
                    help="give a tensor")
    import numpy

    return _of_numpy(numpy.asarray(value, dtype=_THEIR_NAMES[dtype]))


def writer_to(x) -> Callable[[Any, str], None]:
    """What puts new content, as the core gives it, into a tensor of the caller's. Numbers stay what they are."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(x, torch.Tensor):
        return lambda content, dtype: x.detach().copy_(_to_torch(content, dtype))
    if type(x) in (int, float, bool) or (numpy is not None and isinstance(x, numpy.generic)):
        return lambda content, dtype: None
    import numpy

    there = x if isinstance(x, numpy.ndarray) else numpy.from_dlpack(x)
    if not there.flags.writeable:
        raise Error(code="run.read-only", message="the module writes to this input, and the tensor that is given cannot be "
                    "written", help="give a copy, or work on one in forward(): x = x.clone()")
    return lambda content, dtype: numpy.copyto(there, _to_numpy(content, dtype))


# ---- results

# Of types that NumPy does not have itself; PyTorch's have these names too, where it has them.
_ML_DTYPES = {ours: _THEIR_NAMES[ours] for ours in ("bf16", "f8e4m3", "f8e5m2", "f8ue8m0")} | {
    "f4e2m1": "float4_e2m1fn", "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn"}


def _to_numpy(array, dtype: str):
    import numpy

    x = numpy.asarray(array)
    name = _ML_DTYPES.get(dtype)
    if name:
        import ml_dtypes

        x = x.view(getattr(ml_dtypes, name))
    return x


def _to_torch(array, dtype: str):
    import torch

    x = torch.from_dlpack(array)
    name = _ML_DTYPES.get(dtype)
    return x.view(getattr(torch, name)) if name and hasattr(torch, name) else x


def _to_namespace(from_dlpack: Callable) -> Callable:
    return lambda array, dtype: from_dlpack(array)


def maker_for(leaves) -> Callable:
    """How results are made: of the kind that the first tensor among the inputs is; PyTorch's where it is loaded."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    for x in leaves:
        if torch is not None and isinstance(x, torch.Tensor):
            return _to_torch
        if numpy is not None and isinstance(x, (numpy.ndarray, numpy.generic)):
            return _to_numpy
        if hasattr(x, "__array_namespace__"):
            return _to_namespace(x.__array_namespace__().from_dlpack)
    return _to_torch if torch is not None else _to_numpy
