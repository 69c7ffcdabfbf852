# SPDX-License-Identifier: Apache-2.0
"""Linear layers before batch norms, for training.

`prepare_qat_pt2e` and `convert_pt2e` know how to fold the batch norm after a convolution, not the one after a linear layer
(torchao's issue 4463): its floats would stay in the program, outside any delegate. A linear layer on rows is a convolution
of one tap on signals of length 1. As such it is folded.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from ._functional import KEPT
from ._prepared_program import attribute, fake_mode_of
from ._quantization_config import is_trained

_aten = torch.ops.aten
INSTEAD_OF = "tosaic_instead_of"  # in a node's meta: the operator that the user's program has there


def drop_batch_counters(gm: GraphModule) -> None:
    """Batch norms in training count batches. Nobody reads that unless `momentum` is None, and the converted program would
    count on, in int64, outside any delegate."""
    for node in gm.graph.find_nodes(op="call_function", target=_aten.add_.Tensor):
        counter = node.args[0]
        if (isinstance(counter, Node) and counter.op == "get_attr" and counter.target.endswith("num_batches_tracked")
                and not node.users and len(counter.users) == 1):
            gm.graph.erase_node(node)
            gm.graph.erase_node(counter)


def linears_as_convolutions(gm: GraphModule, configs: dict[Node, Any]) -> None:
    """Each linear layer on rows that is to be trained as integers and whose result only a batch norm reads. `configs`: of each
    node, None: float."""
    for norm in gm.graph.find_nodes(op="call_function", target=_aten.batch_norm.default):
        linear = norm.args[0]
        if isinstance(linear, Node) and linear.target is _aten.linear.default and _possible(gm, linear, norm):
            if is_trained(configs.get(linear)):
                _replace(gm, linear, norm)
    gm.recompile()


def _possible(gm: GraphModule, linear: Node, norm: Node) -> bool:
    weight, *bias = linear.args[1:]
    parameters = [weight, *(b for b in bias if b is not None)]
    if len(linear.users) > 1 or linear.args[0].meta["val"].dim() != 2:
        return False
    if not all(isinstance(p, Node) and p.op == "get_attr" for p in (*parameters, *norm.args[1:5])):
        return False
    # A weight that another layer has as well keeps its shape.
    tensors = [attribute(gm, n.target) for n in gm.graph.find_nodes(op="get_attr")]
    if len(weight.users) > 1 or sum(tensor is attribute(gm, weight.target) for tensor in tensors) > 1:
        return False
    # What torchao makes of a folded batch norm divides by its weight.
    return bool(attribute(gm, norm.args[1].target).all())


def _replace(gm: GraphModule, linear: Node, norm: Node) -> None:
    x, weight, *bias = linear.args
    owner, _, name = weight.target.rpartition(".")
    old = attribute(gm, weight.target)
    setattr(gm.get_submodule(owner), name, torch.nn.Parameter(old.detach()[..., None], old.requires_grad))
    mode = fake_mode_of(gm)
    with mode:
        weight.meta["val"] = weight.meta["val"][..., None]

    def call(target: Any, read: Node, like: Node) -> Node:
        node = gm.graph.call_function(target, (read, -1))
        node.meta.update({k: like.meta[k] for k in KEPT if k in like.meta})
        with mode:
            node.meta["val"] = target(read.meta["val"], -1)
        return node

    with gm.graph.inserting_before(linear):
        signal = call(_aten.unsqueeze.default, x, linear)
    # The call keeps its name, which configurations may name.
    linear.meta[INSTEAD_OF] = linear.target
    linear.target, linear.args = _aten.conv1d.default, (signal, weight, *bias)
    with mode:
        for node in (linear, norm):
            node.meta["val"] = node.meta["val"][..., None]
    with gm.graph.inserting_after(norm):
        rows = call(_aten.squeeze.dim, norm, norm)
    norm.replace_all_uses_with(rows, delete_user_cb=lambda user: user is not rows)
