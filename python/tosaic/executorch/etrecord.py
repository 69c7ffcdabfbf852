# SPDX-License-Identifier: Apache-2.0
"""ETRecords of what `tosaic.compile` makes: with them ExecuTorch's Inspector shows times and values under the model's nodes.

    record = etrecord(artifact)
    record.save("model.etrecord")
    Inspector(etdump_path="model.etdp", etrecord="model.etrecord").print_data_tabular()

    etrecord(artifact, for_gap=True).save("gap.etrecord")
    Inspector(etdump_path="model.etdp", etrecord="gap.etrecord", debug_buffer_path="debug.bin").calculate_numeric_gap("SNR")
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._artifact import Artifact
from .._errors import Error

if TYPE_CHECKING:
    from executorch.devtools.etrecord import ETRecord

_METHOD = "forward"


def etrecord(artifact: Artifact, cases: Iterable[Any] | None = None, *, for_gap: bool = False) -> ETRecord:
    """The record of a program with one method that was compiled from a module or an `ExportedProgram`.

    It holds the exported program and its form in ExecuTorch's edge dialect, whose debug handles number the nodes. Each
    instruction of the `.pte` has the handles of the nodes that it computes, a delegate's all of them; an operation inside
    a delegate has its node's by its name, which is what the plug-in's events are called.

    With it are inputs, and what the exported program gives for them. `Inspector.calculate_numeric_gap` runs that program on the
    first case, and holds what was logged against it: delegates' results, and those of kernels outside.

    Args:
        cases: calls of the module, as `artifact.save` takes them for a `.bpte`; the runtime's run has to be of the first.
            None: the example inputs that it was exported with.
        for_gap: for `calculate_numeric_gap`, and not for tables of times. Operations inside delegates then have no nodes: they
            log no values, and ExecuTorch 1.5 would look for them there (IndexError). The conversion of a delegate's only
            result to floats has the delegate's nodes, since the result itself is integers.

    Raises:
        Error: etrecord.program, for what came from a file, and for several methods.
        Exception: ExecuTorch's own, where its edge dialect does not take the program.
    """
    from executorch.exir import EdgeCompileConfig, to_edge
    from executorch.exir._serialize._program import deserialize_pte_binary

    exported = artifact._program._exported
    if exported is None or len(artifact._program.methods) > 1:
        raise Error(code="etrecord.program", message="an ETRecord holds the exported program, and this one "
                    + ("has several methods" if exported is not None else "was read from a file"),
                    help="give tosaic.compile the module, or torch.export.load(FILE)")
    edge = to_edge(exported, generate_etrecord=True, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    handles = _handles_by_node(edge.exported_program())
    nodes = [_Computed(n["op"], n["delegate"], sorted({h for e in n["exported"] for h in handles.get(e, ())}), n["name"], n["exported"])
             for n in json.loads(artifact.manifest)["nodes"]]
    plan = deserialize_pte_binary(artifact.pte).program.execution_plan[0]
    by_instruction: dict[int, Any] = {}
    delegates: dict[int, dict[str, Any]] = {}
    results: dict[int, int] = {}
    made: dict[int, list[int]] = {}  # handles of what a delegate computed, by the value that has it
    outside = [n for n in nodes if n.delegate < 0 and n.handles]  # conversions between floats and integers have none
    for number, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if hasattr(call, "delegate_index"):
            within = [n for n in nodes if n.delegate == call.delegate_index]
            by_instruction[number] = sorted({h for n in within for h in n.handles})
            made.update(_only_result(call.args, plan, by_instruction[number]))
            delegates[number] = {"name": plan.delegates[call.delegate_index].id, "delegate_map": {} if for_gap else _by_identifier(within)}
            results[number] = sum(v in plan.outputs for v in call.args) or 1
        elif hasattr(call, "op_index"):
            kernel = plan.operators[call.op_index].name
            found = _next_of(kernel, outside)
            by_instruction[number] = found.handles if found else []
            if for_gap and kernel == "quantized_decomposed::dequantize_per_tensor":
                by_instruction[number] = made.get(call.args[0], [])
            results[number] = 1
    record = edge._etrecord
    record._debug_handle_map = {_METHOD: by_instruction}
    record._delegate_map = {_METHOD: delegates}
    record._instruction_id_to_num_outs_map = {_METHOD: results}
    _add_cases(record, artifact, cases)
    return record


def _only_result(args: list[int], plan: Any, handles: list[int]) -> dict[int, list[int]]:
    """The result of a delegate that has one. Turned into floats, it is what the nodes compute; of several results ExecuTorch
    would compare the last kernel's with the last node's."""
    read = set(plan.inputs) | {instruction.instr_args.args[-1] for instruction in plan.chains[0].instructions
                               if hasattr(instruction.instr_args, "op_index")}
    written = {instruction.instr_args.args[0] for instruction in plan.chains[0].instructions
               if hasattr(instruction.instr_args, "op_index")}
    results = [v for v in args if v not in read and v in written]
    return {results[0]: handles} if len(results) == 1 else {}


def _add_cases(record: ETRecord, artifact: Artifact, cases: Iterable[Any] | None) -> None:
    """Inputs of the first case, and outputs of each, flat as the runtime has them."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    program = artifact._program
    exported, call = program._exported, program._trees()[0]
    calls = [_call(case) for case in cases] if cases is not None else [exported.example_inputs] if exported.example_inputs else []
    outputs = []
    for number, (args, kwargs) in enumerate(calls):
        # A call may write to its inputs, and to the states of the program, which others have.
        args, kwargs = tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, (args, kwargs))
        leaves = call.flatten(args, kwargs)
        if number == 0:
            record.update_representative_inputs(copy.deepcopy(leaves))
        module = exported.module()
        states = [(state, state.clone()) for state in module.buffers()]
        with torch.no_grad():
            given = [x.clone() if isinstance(x, torch.Tensor) else x for x in tree_leaves(module(*args, **kwargs))]
            for state, before in states:
                state.copy_(before)
        tensors = [x for x, a in zip(leaves, program.inputs) if a.tensor is not None]
        outputs.append([tensors[at] for at in program._core.methods[0]["written_inputs"]] + given)
    if outputs:
        record.update_reference_outputs({_METHOD: outputs})


def _call(case: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(case, Mapping):
        return (), dict(case)
    return (tuple(case) if isinstance(case, (tuple, list)) else (case,)), {}


class _Computed:
    """A node of the compiled program."""

    def __init__(self, op: str, delegate: int, handles: list[int], name: str, exported: list[str]) -> None:
        self.op, self.delegate, self.handles, self.name, self.exported = op, delegate, handles, name, exported


def _handles_by_node(edge: Any) -> dict[str, set[int]]:
    """The debug handles of what became of each node of the exported program."""
    from executorch.exir.debug_handle_utils import get_greatest_ancestor_node_identifier

    found: dict[str, set[int]] = defaultdict(set)
    for node in edge.graph.nodes:
        if node.op == "call_function" and node.meta.get("debug_handle") and node.meta.get("from_node"):
            found[get_greatest_ancestor_node_identifier(node).rpartition(".")[0]].add(node.meta["debug_handle"])
    return found


def _by_identifier(nodes: Iterable[_Computed]) -> dict[str, tuple[int, ...]]:
    """Handles by the names that operations inside a delegate have: those of nodes."""
    return {name: tuple(n.handles) for n in nodes for name in (n.name, *n.exported) if n.handles}


def _next_of(kernel: str, outside: list[_Computed]) -> _Computed | None:
    """The first node that this kernel, "aten::add", may compute, and which none before did: both are in the program's order."""
    operator = kernel.replace("::", ".")
    for i, node in enumerate(outside):
        if node.op.rpartition(".")[0] == operator:
            del outside[: i + 1]
            return node
    return None
