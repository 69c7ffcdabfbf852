# SPDX-License-Identifier: Apache-2.0
"""ETRecords of what `tosaic.compile` makes: with them ExecuTorch's Inspector shows times and values under the model's nodes.

    record = etrecord(artifact)
    record.save("model.etrecord")
    Inspector(etdump_path="model.etdp", etrecord="model.etrecord").print_data_tabular()
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._artifact import Artifact
from .._errors import Error

if TYPE_CHECKING:
    from executorch.devtools.etrecord import ETRecord

_METHOD = "forward"


def etrecord(artifact: Artifact) -> ETRecord:
    """The record of a program with one method that was compiled from a module or an `ExportedProgram`.

    It holds the exported program and its form in ExecuTorch's edge dialect, whose debug handles number the nodes. Each
    instruction of the `.pte` has the handles of the nodes that it computes, a delegate's all of them; an operation inside
    a delegate has its node's by its name, which is what the plug-in's events are called.

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
    outside = [n for n in nodes if n.delegate < 0 and n.handles]  # conversions between floats and integers have none
    for number, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if hasattr(call, "delegate_index"):
            inside = [n for n in nodes if n.delegate == call.delegate_index]
            by_instruction[number] = sorted({h for n in inside for h in n.handles})
            delegates[number] = {"name": plan.delegates[call.delegate_index].id, "delegate_map": _by_identifier(inside)}
            results[number] = sum(v in plan.outputs for v in call.args) or 1
        elif hasattr(call, "op_index"):
            found = _next_of(plan.operators[call.op_index].name, outside)
            by_instruction[number] = found.handles if found else []
            results[number] = 1
    record = edge._etrecord
    record._debug_handle_map = {_METHOD: by_instruction}
    record._delegate_map = {_METHOD: delegates}
    record._instruction_id_to_num_outs_map = {_METHOD: results}
    return record


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
