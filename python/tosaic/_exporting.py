# SPDX-License-Identifier: Apache-2.0
"""torch.export of a module as people have it: in training mode, with a tokenizer's dict, NumPy's arrays or torchao's tensors."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from . import _block_scaled
from ._errors import CompileWarning, Error
from ._exported import TRACING


@contextlib.contextmanager
def _inference(module):
    """The module as it infers; every part is in its own mode again afterwards."""
    training = [m for m in module.modules() if m.training]
    with contextlib.suppress(NotImplementedError):  # what torch.export and PT2E give is in one mode for good
        module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True


def export(module, example: Any, kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None):
    """torch.export.export of the module in inference mode, for one thread at a time. `example`: a tuple of arguments, the
    only argument, or a dict of keyword arguments."""
    import torch

    args, kwargs = _told_apart(_call_of(module, example, kwargs))
    with TRACING:  # before the weights are looked at: others may be exporting the same module
        _check_devices(module, (args, kwargs))
        with _inference(module), torch.no_grad():
            try:
                return torch.export.export(_unwrapped(module), args, kwargs, dynamic_shapes=dynamic_shapes)
            except Exception as why:
                if type(why).__name__ in ("GuardOnDataDependentSymNode", "DataDependentOutputException"):
                    raise _branches(why) from why
                if "NotImplemented" in str(why):
                    _refuse_classes_without_export(module, why)
                raise


def _check_devices(module, arguments) -> None:
    import torch

    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.device.type != "cpu":
            raise Error(code="program.device", message=f"'{name}' of the model is on the device '{tensor.device}'",
                        help="export model.cpu()")
    for leaf in torch.utils._pytree.tree_leaves(arguments):
        if isinstance(leaf, torch.Tensor) and leaf.device.type != "cpu":
            raise Error(code="program.device", message=f"an example input is on the device '{leaf.device}'",
                        help="give tensor.cpu()")
    if isinstance(module, torch.jit.ScriptModule):
        raise Error(code="program.kind", message=f"{type(module).__name__} is TorchScript, which torch.export does not take",
                    help="give the torch.nn.Module that it was made from")


def tell_of_doubles(module, program, stacklevel: int) -> None:
    """A warning where all floats of a module are doubles, as they become by NumPy's arrays."""
    import torch

    inputs = [x for x in torch.utils._pytree.tree_leaves(program.example_inputs) if isinstance(x, torch.Tensor)]
    for tensors in ([*module.parameters()], inputs):
        dtypes = {t.dtype for t in tensors if t.is_floating_point()}
        if dtypes:
            if dtypes == {torch.float64}:
                warnings.warn(CompileWarning("the model computes in float64, which delegates have not, so it stays outside them; "
                                             "model.float(), and float32 inputs, say what is meant"), stacklevel=stacklevel + 1)
            return


def _call_of(module, example: Any, kwargs: dict[str, Any] | None) -> tuple[tuple, dict[str, Any] | None]:
    """The call that an example stands for."""
    from torch.utils import _pytree

    if isinstance(example, str) or (example is None and not kwargs):
        given = f"; {example!r} is no example" if isinstance(example, str) else ""
        raise Error(code="program.example-inputs", message=f"{type(module).__name__} is a module: how is it called?{given}",
                    help="give example_inputs, e.g. tosaic.compile(model, (torch.randn(1, 3, 224, 224),), target=...)")
    if isinstance(example, Mapping):
        given = dict(example)  # a tokenizer's is a class of its own
        if _are_keywords(module, given):
            example, kwargs = None, {**given, **(kwargs or {})}
        elif not isinstance(example, dict):
            example = given
    if not isinstance(example, tuple):
        example = () if example is None else (example,)
    return _pytree.tree_map(_as_tensor, (example, kwargs))


def _are_keywords(module, given: dict[Any, Any]) -> bool:
    """Does the module take these as arguments by name? Otherwise the dict itself is its argument."""
    import inspect  # takes its time

    try:
        taken = inspect.signature(module.forward)
        taken.bind(**given)
    except (TypeError, ValueError):
        return False
    by_name = {p.name for p in taken.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return bool(by_name & given.keys())


def _as_tensor(leaf: Any) -> Any:
    """NumPy's arrays, and others that speak DLPack, as PyTorch's tensors; what else a call is made of as it is."""
    import torch

    numpy = sys.modules.get("numpy")
    if isinstance(leaf, torch.Tensor) or not hasattr(leaf, "__dlpack__"):
        if numpy is None or not isinstance(leaf, numpy.generic):
            return leaf
    try:
        if numpy is not None and isinstance(leaf, (numpy.ndarray, numpy.generic)):
            return torch.from_numpy(numpy.array(leaf))  # a copy: examples may be read-only, or lie backwards
        return torch.from_dlpack(leaf)
    except (TypeError, ValueError, BufferError, RuntimeError) as why:
        raise Error(code="program.example-inputs", message=f"a {type(leaf).__qualname__} among the example inputs cannot be "
                    f"a tensor: {why}", help="give a torch.Tensor of the dtype that the model takes") from why


def _told_apart(arguments):
    """A tensor that is given twice, as in model(x, x), as two: torch.export would make one input of both for good."""
    import torch

    met = set()

    def one(leaf):
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in met:
            met.add(id(leaf))
            return leaf
        return leaf.clone()

    return torch.utils._pytree.tree_map(one, arguments)


def _unwrapped(module):
    """The module with torchao's tensors, several in one, as their parts: a copy of its structure, with the same weights."""
    tensors = [*module.parameters(), *module.buffers()]
    if not any(hasattr(t, "__tensor_flatten__") for t in tensors):
        return module
    try:
        from torchao.utils import unwrap_tensor_subclass
    except ImportError:
        return module  # refused by name where the program's weights are read
    copied = copy.deepcopy(module, {id(t): t for t in tensors})
    if any(map(_block_scaled.is_block_scaled, tensors)):
        copied = _block_scaled.replace_linears(copied)
    return unwrap_tensor_subclass(copied)


def _refuse_classes_without_export(module, why: Exception) -> None:
    """An Error where a weight is of a class whose arithmetic torch.export cannot follow, such as torchao's MXTensor."""
    for name, tensor in module.named_parameters():
        if hasattr(tensor, "__tensor_flatten__"):
            raise Error(code="program.tensor-class",
                        message=f"'{name}' of the model is a {type(tensor).__name__}, which torch.export cannot take apart",
                        notes=[str(why).splitlines()[0]],
                        help=f"replace it by a plain tensor of the same values, model.get_parameter({name!r}).dequantize()") from why


def _branches(why: Exception) -> Error:
    """A module whose Python decides by a tensor's numbers: at which line."""
    import traceback  # takes its time

    import torch

    library = os.path.dirname(torch.__file__) + os.sep
    frames = [f for f in traceback.extract_tb(why.__traceback__)
              if not f.filename.startswith((library, os.path.dirname(__file__) + os.sep, "<"))]
    last = frames[-1] if frames else None
    return Error(code="program.branch", place=f"{last.filename}:{last.lineno}" if last else "",
                 message="Python branches here on the values of a tensor, and an exported program has one path for all of them",
                 notes=[last.line] if last and last.line else [str(why).splitlines()[0]],
                 help="torch.where chooses among values, torch.cond among computations "
                      "(torch.cond(x.sum() > 0, f, g, (x,))); a value that is always the same: make it an attribute")
