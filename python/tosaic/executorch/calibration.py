# SPDX-License-Identifier: Apache-2.0
"""What stands between `prepare_pt2e` and `convert_pt2e`: the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree
from torchao.quantization.pt2e import FakeQuantizeBase, ObserverBase

from .. import _core
from .._errors import CompileWarning, Error
from .._tensors import describe
from ._prepared_program import attribute, holder, program_of

_BY_CHANNEL = (torch.per_channel_symmetric, torch.per_channel_affine, torch.per_channel_affine_float_qparams)


@dataclass
class _Layer:
    """A convolution or linear layer with a constant weight that is to be rounded."""
    call: Node
    weight: Node
    rounding: ObserverBase
    bias: Node
    lost: torch.Tensor | None = None  # weight - rounded weight
    shift: torch.Tensor | None = None  # per channel, summed over the samples


def _argument(call: Node, name: str) -> Any:
    names = [a.name for a in call.target._schema.arguments]
    if name not in names:
        return None
    at = names.index(name)
    return call.args[at] if at < len(call.args) else call.kwargs.get(name)


def _attribute(gm: GraphModule, node: Any) -> torch.Tensor | None:
    return attribute(gm, node.target) if isinstance(node, Node) and node.op == "get_attr" else None


def _put(gm: GraphModule, node: Node, content: torch.Tensor) -> None:
    """In place of the attribute, whose tensor the user's model has, too."""
    module, name = holder(gm, node.target)
    before = getattr(module, name)
    content = content.to(before.dtype)
    is_parameter = isinstance(before, torch.nn.Parameter)
    setattr(module, name, torch.nn.Parameter(content, before.requires_grad) if is_parameter else content)


def _observed(gm: GraphModule, node: Any) -> tuple[Node, ObserverBase | None]:
    """What an observer looks at, and the observer."""
    if isinstance(node, Node) and node.op == "call_module":
        observer = gm.get_submodule(node.target)
        if isinstance(observer, ObserverBase):
            return node.args[0], observer
    return node, None


def _layers(gm: GraphModule) -> list[_Layer]:
    found = []
    for call in gm.graph.nodes:
        if call.op != "call_function" or not hasattr(call.target, "_schema"):
            continue
        weight, rounding = _observed(gm, _argument(call, "weight"))
        bias, _ = _observed(gm, _argument(call, "bias"))
        if rounding is None or _attribute(gm, weight) is None or _attribute(gm, bias) is None:
            continue
        if _attribute(gm, weight).dim() >= 2:
            found.append(_Layer(call, weight, rounding, bias))
    return found


def _rounded(weight: torch.Tensor, observer: Any) -> torch.Tensor:
    scale, zero = observer.calculate_qparams()
    low, high = observer.quant_min, observer.quant_max
    if getattr(observer, "ch_axis", None) is not None and scale.numel() > 1:
        return torch.fake_quantize_per_channel_affine(weight, scale.flatten().float(), zero.flatten().int(), observer.ch_axis,
                                                      low, high)
    return torch.fake_quantize_per_tensor_affine(weight, float(scale), int(zero), low, high)


class _Shifts(torch.fx.Interpreter):
    """Runs the program and adds up what each layer's results lose in the mean."""

    def __init__(self, gm: GraphModule, layers: list[_Layer]):
        super().__init__(gm)
        self.layers = {layer.call: layer for layer in layers}

    def run_node(self, n: Node) -> Any:
        layer = self.layers.get(n)
        if layer is None:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        names = [a.name for a in n.target._schema.arguments]
        given = dict(zip(names, args)) | kwargs
        y = n.target(**(given | {"weight": layer.lost, "bias": None}))
        channel = y.dim() + 1 - layer.lost.dim()
        shift = y.mean([d for d in range(y.dim()) if d != channel])
        layer.shift = shift if layer.shift is None else layer.shift + shift
        return n.target(**given)


def _without_observers(gm: GraphModule) -> GraphModule:
    """The program itself, of the same parameters."""
    graph, now = torch.fx.Graph(), {}
    for node in gm.graph.nodes:
        seen, observer = _observed(gm, node)
        now[node] = graph.node_copy(node, lambda n: now[n]) if observer is None else now[seen]
    return GraphModule(gm, graph)


def _in_int8_by_channel(gm: GraphModule) -> bool:
    """Is that what the quantizer asked for?"""
    weights, operands = [], []
    for call in gm.graph.nodes:
        if call.op == "call_function" and hasattr(call.target, "_schema"):
            _, observer = _observed(gm, _argument(call, "weight"))
            if observer is not None:
                weights.append(observer)
                operands.append(_observed(gm, call.args[0])[1])
    by_channel = all(getattr(w, "qscheme", None) in _BY_CHANNEL for w in weights)
    return by_channel and any(o is not None and o.quant_max - o.quant_min <= 255 for o in operands)


def _described(calls: list) -> Iterator[tuple[list, list]]:
    for call in calls:
        described = [describe(x) for x in _pytree.tree_leaves(call) if isinstance(x, torch.Tensor)]
        yield [owner for _, owner in described], [row for row, _ in described]


def _equalise(prepared: GraphModule, calls: list) -> None:
    floats = _without_observers(prepared)
    try:
        changed = _core.equalized_parameters(program_of(floats), "tosa-int", {}, {"": _described(calls)})
    except Error as why:
        warnings.warn(CompileWarning(f"channels stay as they are: {why}"), stacklevel=3)
        return
    nodes = {n.name: n for n in floats.graph.find_nodes(op="get_attr")}
    for name, content in changed.items():
        _put(prepared, nodes[name], torch.from_dlpack(content))


def calibrate(prepared: GraphModule, samples: Iterable[Any], *, bias_correction: bool = True,
              equalization: bool = True) -> GraphModule:
    """Shows samples to a program of `prepare_pt2e`, and changes its weights and biases such that integers lose less.

    Channels of int8 tensors that lie far from zero are moved, and small ones made larger, where the layers that read them
    can take that back: what floats compute stays the same but for the last digits. Then biases are corrected: what the rounding of weights adds to the mean of each channel of a layer's
    results is taken from its bias (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction",
    ICCV 2019, sections 4.1 and 4.2, here with what the samples show).

        prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
        model = convert_pt2e(calibrate(prepared, samples))

    Args:
        prepared: what `prepare_pt2e` returned; it is changed, the model is not. What `prepare_qat_pt2e`
            returned is refused: its training does the same.
        samples: the arguments of a call each, as a tuple; a tensor stands for a program's only argument.
        bias_correction: False leaves biases as they are.
        equalization: False leaves channels as they are. So do sizes that vary, activations of 16 bits, and weights with one
            scale for all channels. With fewer than 8 samples none become larger.

    Returns:
        `prepared`.

    Raises:
        tosaic.Error: `calibrate.no-samples`, `quantizer.program`.
    """
    calls = [s if isinstance(s, (tuple, list)) else (s, ) for s in samples]
    if not calls:
        raise Error(code="calibrate.no-samples", message="there are no samples",
                    help="give the arguments of one call or more, each as a tuple")
    if any(isinstance(m, FakeQuantizeBase) for m in prepared.modules()):
        raise Error(code="quantizer.program", message="the program was prepared for training, which finds biases itself",
                    help="use prepare_pt2e instead of prepare_qat_pt2e, or train and convert")
    with torch.no_grad():
        if equalization and _in_int8_by_channel(prepared):
            _equalise(prepared, calls)
        for call in calls:
            prepared(*call)
        layers = _layers(prepared) if bias_correction else []
        for layer in layers:
            weight = _attribute(prepared, layer.weight)
            layer.lost = weight - _rounded(weight, layer.rounding)
        shifts = _Shifts(prepared, layers)
        for call in calls if layers else ():
            shifts.run(*call)
        shared: dict[str, list[_Layer]] = {}  # calls of one layer, as the steps of a recurrent one are, have one bias
        for layer in layers:
            if layer.shift is not None:
                shared.setdefault(layer.bias.target, []).append(layer)
        for of in shared.values():
            shift = torch.stack([layer.shift for layer in of]).mean(0) / len(calls)
            if shift.isfinite().all():
                _put(prepared, of[0].bias, _attribute(prepared, of[0].bias) + shift)
    return prepared
