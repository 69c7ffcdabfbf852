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
    return (len(linear.users) == 1 and linear.args[0].meta["val"].dim() == 2 and all(isinstance(p, Node) and p.op == "get_attr" for p in norm.args[1:5])
            # What torchao makes of a folded batch norm divides by its weight.
            and attribute(gm, norm.args[1].target).all()
            and all(isinstance(p, Node) and p.op == "get_attr" and len(p.users) == 1 for p in parameters)
            # A weight that another layer has as well keeps its shape.
            and sum(n.op == "get_attr" and attribute(gm, n.target) is attribute(gm, weight.target) for n in gm.graph.nodes) == 1)


def _replace(gm: GraphModule, linear: Node, norm: Node) -> None:
    x, weight, *bias = linear.args
    owner, _, name = weight.target.rpartition(".")
    old = attribute(gm, weight.target)
    setattr(gm.get_submodule(owner), name, torch.nn.Parameter(old.detach()[..., None], old.requires_grad))
    mode = fake_mode_of(gm)
    with mode:
        weight.meta["val"] = weight.meta["val"][..., None]

    def call(target: Any, args: tuple, like: Node) -> Node:
        node = gm.graph.call_function(target, args)
        node.meta.update({k: like.meta[k] for k in KEPT if k in like.meta})
        with mode:
            node.meta["val"] = target(*torch.fx.map_arg(args, lambda n: n.meta["val"]))
        return node

    with gm.graph.inserting_before(linear):
        signal = call(_aten.unsqueeze.default, (x, -1), linear)
        conv = call(_aten.conv1d.default, (signal, weight, *bias), linear)
    conv.meta[INSTEAD_OF] = linear.target
    linear.replace_all_uses_with(conv)
    gm.graph.erase_node(linear)
    conv._rename(linear.name)
    with mode:
        norm.meta["val"] = norm.meta["val"][..., None]
    with gm.graph.inserting_after(norm):
        rows = call(_aten.squeeze.dim, (norm, -1), norm)
    norm.replace_all_uses_with(rows, delete_user_cb=lambda user: user is not rows)
