# SPDX-License-Identifier: Apache-2.0
"""PyTorch's modules and exported programs as programs of the core, in memory: the graph is serialised, the weights stay
where they are.
"""

from __future__ import annotations

import contextlib
from typing import Any

from . import _core
from ._errors import Error
from ._tensors import describe, torch_name


def is_module(x) -> bool:
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in type(x).__mro__)


def is_exported(x) -> bool:
    return type(x).__module__.startswith("torch.export") and type(x).__name__ == "ExportedProgram"


@contextlib.contextmanager
def _inference(module):
    """The module as it infers; every part is in its own mode again afterwards."""
    training = [m for m in module.modules() if m.training]
    module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True


def export(module, args: Any, kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None):
    """torch.export.export of the module in inference mode. `args`: a tuple, or the only argument."""
    import torch

    if args is None and not kwargs:
        raise Error(code="program.example-inputs", message=f"{type(module).__name__} is a module: how is it called?",
                    help="give example_inputs, e.g. tosaic.compile(model, (torch.randn(1, 3, 224, 224),), target=...)")
    if not isinstance(args, tuple):
        args = () if args is None else (args,)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.device.type != "cpu":
            raise Error(code="program.device", message=f"'{name}' of the model is on the device '{tensor.device}'",
                        help="export model.cpu()")
    with _inference(module), torch.no_grad():
        return torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)


def _graph_json(program) -> str:
    """What torch.export.save would write as models/model.json."""
    import torch
    from torch._export.serde import serialize

    graph = serialize.GraphModuleSerializer(program.graph_signature, program.module_call_graph).serialize(
        program.graph_module)
    whole = serialize.ExportedProgram(
        graph_module=graph,
        opset_version={"aten": torch._C._get_max_operator_version()},
        range_constraints=serialize.serialize_range_constraints(program.range_constraints),
        schema_version=serialize.SchemaVersion(*serialize.SCHEMA_VERSION),
        verifiers=[],
        torch_version=torch.__version__,
    )
    return serialize._to_json_bytes(whole).decode()


def _weights(program) -> list[tuple]:
    rows = []
    for name, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if not hasattr(tensor, "untyped_storage"):
            continue  # a custom object: the graph's reader says so where it is used
        if tensor.device.type != "cpu":
            raise Error(code="program.device", message=f"'{name}' of the program is on the device '{tensor.device}'",
                        help="export model.cpu()")
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
    if any(type(x).__name__ == "FakeTensor" or x.device.type != "cpu" for x in tensors):
        return []
    sample = [(x, describe(x)[0]) for x in tensors]
    takes = [s for s in program.graph_signature.input_specs
             if s.kind.name == "USER_INPUT" and type(s.arg).__name__ in ("TensorArgument", "SymIntArgument")]
    return [sample] if len(takes) == len(sample) else []


def held(program, name: str = "program"):
    """(the core's Program, messages of an ExportedProgram. Its weights must not change while the result is used."""
    return _core.Program.held(_graph_json(program), _weights(program), _examples(program), name)
