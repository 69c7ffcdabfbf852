# SPDX-License-Identifier: Apache-2.0
"""PyTorch's modules and exported programs as programs of the core, in memory: the graph is serialised, the weights stay
where they are.
"""

from __future__ import annotations

import contextlib
import gc
import re
import threading
from typing import Any

from . import _core
from ._errors import Error
from ._tensors import describe, has_dtype, torch_name


TORCH = ((2, 9), (2, 15))  # the first and the last version that were tried
# Tracing replaces functions of torch.fx for the process, and is PyTorch's in one thread at a time.
TRACING = threading.RLock()


def _of_this_torch(body):
    """What touches PyTorch's private parts: says which versions have them where this one has not."""
    import torch

    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    tried = " to ".join(f"{a}.{b}" for a, b in TORCH)
    if version < TORCH[0]:
        raise Error(code="program.torch-version", message=f"this is torch {torch.__version__}; programs are taken from "
                    f"torch {tried}", help=f"pip install 'torch>={TORCH[0][0]}.{TORCH[0][1]}'")
    try:
        return body()
    except (ImportError, AttributeError, TypeError) as why:
        if version <= TORCH[1]:
            raise
        raise Error(code="program.torch-version", message=f"torch {torch.__version__} cannot be asked for the program in "
                    f"memory ({why}); that was tried with torch {tried}",
                    help="torch.export.save(program, 'model.pt2') and give its path, or use one of these versions") from why


def _refuse_draft(program) -> None:
    """draft_export goes on where export stops: it takes the branch that the example takes, and keeps a report of it."""
    report = getattr(program, "_report", None)
    if report is None or report.successful():
        return  # sound: what torch.export.export gives
    notes = []
    for failure in report.failures:
        data = failure.data
        what = data.get("expr") or data.get("op") or ""
        if "result" in data:
            what += f" was taken to be {data['result']}"
        elif data.get("reason"):
            what += f": {data['reason']}"
        frame = (data.get("user_stack") or [None])[-1]
        if frame:
            file = report.str_to_filename.get(frame["filename"], "")
            what += f", at {file}:{frame['line']} \"{frame['loc']}\"" if file else f", at \"{frame['loc']}\""
        notes.append(f"{str(failure.failure_type).lower().replace('_', ' ')}: {what}")
    raise Error(code="program.draft", message="draft_export could not export the module soundly: the program is right for "
                "inputs like the example, and nothing checks the others", notes=notes,
                help="torch.where or torch.cond for a branch on values, torch._check for what you know to hold, then "
                     "torch.export.export")


def is_module(x) -> bool:
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in type(x).__mro__)


def is_exported(x) -> bool:
    return type(x).__module__.startswith("torch.export") and type(x).__name__ == "ExportedProgram"


@contextlib.contextmanager
def uncollected():
    """PyTorch's serialiser makes a hundred thousand small objects, and no cycles: looking for those, among all that a process
    with PyTorch holds, takes three times as long as the work."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _graph_json(program) -> str:
    """What torch.export.save would write as models/model.json; nodes of a decomposed call say which call they are."""
    with uncollected():
        return _of_this_torch(lambda: _serialised(program))


def _serialised(program) -> str:
    from torch._export.serde.serialize import SerializeError

    from ._serialised import text_of

    try:
        try:
            return text_of(program, program.module_call_graph)
        except NotImplementedError:  # containers that it has no name for, torch.return_types among them: `_pytree` asks PyTorch
            return text_of(program, [])
    except SerializeError as why:
        lines = [line.strip() for line in str(why).splitlines() if line.strip()]
        raise Error(code="program.not-serialisable", message=f"PyTorch cannot write the program down: {lines[-1]}",
                    notes=lines[:1], help="torch.export.save refuses it alike. What a loop carries has to be tensors "
                    "(torch.zeros((), dtype=torch.int64), not 0), and what its body holds buffers") from why


def _weights(program) -> list[tuple]:
    rows = []
    for name, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if not hasattr(tensor, "untyped_storage"):
            continue  # a custom object: the graph's reader says so where it is used
        if hasattr(tensor, "__tensor_flatten__"):
            raise Error(code="program.tensor-class",
                        message=f"'{name}' of the program is a {type(tensor).__name__}, several tensors in one",
                        help="call torchao.utils.unwrap_tensor_subclass(model) before torch.export.export")
        if tensor.device.type != "cpu":
            raise Error(code="program.device", message=f"'{name}' of the program is on the device '{tensor.device}'",
                        help="export model.cpu()")
        if str(tensor.dtype) == "torch.complex64":  # as the core holds them: pairs of floats
            import torch

            tensor = torch.view_as_real(tensor.detach().resolve_conj())
        storage = tensor.untyped_storage()
        rows.append((name, storage, storage.data_ptr(), storage.nbytes(), torch_name(tensor.dtype), tuple(tensor.shape),
                     tensor.stride(), tensor.storage_offset()))
    return rows


def _examples(program) -> list[list[tuple]]:
    """The stored example inputs: one set, of the tensors among them."""
    if program.example_inputs is None:
        return []
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(program.example_inputs)
    tensors = [x.detach().contiguous() for x in leaves if isinstance(x, torch.Tensor)]
    if any(type(x).__name__ == "FakeTensor" or x.device.type != "cpu" or not has_dtype(x.dtype) for x in tensors):
        return []
    sample = [(x, describe(x)[0]) for x in tensors]
    takes = [s for s in program.graph_signature.input_specs
             if s.kind.name == "USER_INPUT" and type(s.arg).__name__ in ("TensorArgument", "SymIntArgument")]
    return [sample] if len(takes) == len(sample) else []


def held(program, name: str = "program", only_lowerings: bool = False):
    """(the core's Program, messages) of an ExportedProgram. Calls that the core does not know are decomposed
    (`_bridge`); `only_lowerings`: those that the user says. Its weights must not change while the result is used."""
    from . import _bridge

    _refuse_draft(program)
    with TRACING:
        program = _bridge.known(program, only_lowerings)
        graph = _graph_json(program)
    return _core.Program.held(graph, _weights(program), _examples(program), name)
