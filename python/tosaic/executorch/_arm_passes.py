# SPDX-License-Identifier: Apache-2.0
"""Programs for ExecuTorch's own Arm backends, which lower what their passes have decomposed before."""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node


def decompose_arm(model: GraphModule, spec: Any, floating: list[Node]) -> GraphModule:
    """The graph after ExecuTorch's passes for annotation. `spec`: its compile spec or TOSA specification."""
    from executorch.backends.arm._passes import ArmPassManager
    from executorch.backends.arm.constants import DISALLOW_TFA_META_KEY
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    for node in model.graph.nodes:
        node.meta[DISALLOW_TFA_META_KEY] = False
    for node in floating:
        node.meta[DISALLOW_TFA_META_KEY] = True
    for node in model.graph.find_nodes(op="call_module", target="_guards_fn"):
        model.graph.erase_node(node)  # which these passes do not take
    model.recompile()
    compile_spec = spec if hasattr(spec, "tosa_spec") else TosaCompileSpec(spec)
    return ArmPassManager(compile_spec).transform_for_annotation_pipeline(model)
