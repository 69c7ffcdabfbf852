# SPDX-License-Identifier: Apache-2.0
"""Annotations of PT2E made of the core's plan: specs on what calls read and give, shared as the plan's scales are."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (DerivedQuantizationSpec, FixedQParamsQuantizationSpec,
                                                 QuantizationAnnotation, SharedQuantizationSpec)

from ._plan import Place, tensor_operands
from ._quantization_config import activation_of, along, bias_spec, in_certain_ranges, in_width

ANNOTATION = "quantization_annotation"
_MARK = {"_arm_annotation_info": {"quantized": True}}  # what ExecuTorch's own Arm partitioners look for


def is_annotated(node: Node) -> bool:
    """Has a quantizer said something of the node?"""
    return ANNOTATION in node.meta and node.meta[ANNOTATION]._annotated


def _fixed(scale: float) -> FixedQParamsQuantizationSpec:
    return FixedQParamsQuantizationSpec(dtype=torch.int8, scale=scale, zero_point=0, quant_min=-127, quant_max=127,
                                        qscheme=torch.per_tensor_symmetric)


def _widened(producer: Node, narrow: Any) -> DerivedQuantizationSpec:
    """8-bit quantised values as 16-bit ones, without rounding."""
    def scales(observers):
        scale, _ = observers[0].calculate_qparams()
        return scale / 128, torch.zeros_like(scale, dtype=torch.int32)

    return DerivedQuantizationSpec(derived_from=[producer], derive_qparams_fn=scales, dtype=torch.int16, quant_min=-32767,
                                   quant_max=32767, qscheme=torch.per_tensor_symmetric)


def _scaled(source: Any, factor: float, spec: Any) -> DerivedQuantizationSpec:
    """The quantised values of `source`, on its scale times a number."""
    def scales(observers):
        scale, zero_point = observers[0].calculate_qparams()
        return (scale.double() * factor).to(torch.float32), zero_point

    return DerivedQuantizationSpec(derived_from=[source], derive_qparams_fn=scales, dtype=spec.dtype,
                                   quant_min=spec.quant_min, quant_max=spec.quant_max, qscheme=spec.qscheme)


class Annotator:
    """Annotates one graph whose nodes know their locations."""

    def __init__(self, gm: GraphModule, key: str, for_arm: bool = False):
        """`key`: of the places. `for_arm`: for ExecuTorch's own Arm backends, which want specs on constants and after every
        call."""
        self.gm, self.key, self.for_arm = gm, key, for_arm
        self.roots: dict[tuple[int, Any], Any] = {}  # (plan, group) -> the first edge or node with its scale
        self.inputs: dict[Node, dict[Node, Any]] = {}
        self.outputs: dict[Node, Any] = {}
        self.theirs = {n for n in gm.graph.nodes if is_annotated(n)}  # by quantizers before this one

    def run(self) -> None:
        # PT2E makes observers in this order: what a call reads, then what it gives.
        for node in self.gm.graph.nodes:
            if node in self.theirs or isinstance(node.target, torch._ops.HigherOrderOperator):
                continue  # what calls bodies; PT2E asks for these by themselves
            place: Place | None = node.meta.get(self.key)
            if node.op in ("placeholder", "output"):
                self._boundary(node, place)
            elif place is not None and place.config is not None:
                self._reads(node, place)
                self._gives(node, place)
                if self.for_arm and (self._computes_quantised(node, place) or self._passes_quantised(node)):
                    node.meta["custom"] = {**node.meta.get("custom", {}), **_MARK}
        for node in self.gm.graph.nodes:
            if node in self.inputs or node in self.outputs:
                node.meta[ANNOTATION] = QuantizationAnnotation(input_qspec_map=self.inputs.get(node, {}),
                                                               output_qspec=self.outputs.get(node), _annotated=True)

    # ---- what the program takes and gives, where the user configured that

    def _boundary(self, node: Node, place: Place | None) -> None:
        if place is None or place.config is None:
            return
        if node.op == "placeholder":
            value = node.meta.get("val")
            spec = place.config.output_activation or place.config.input_activation
            if spec is not None and node.users and isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                same = spec.dtype == {"i8": torch.int8, "i16": torch.int16}.get(place.plan and place.plan.codes(place.value))
                self.outputs[node] = self._shared(place, place.value, node, spec) if same else spec
            return
        for given in node.all_input_nodes:
            value = given.meta.get("val")
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and place.config.input_activation is not None:
                self.inputs.setdefault(node, {})[given] = place.config.input_activation

    # ---- calls

    def _shared(self, place: Place, value: int, at: Any, spec: Any) -> Any:
        """The spec, or where a tensor with the same scale has one already: shared with that."""
        told = place.plan.values[value]
        root = self.roots.setdefault(self._group(place, value), at)
        if root != at:
            return SharedQuantizationSpec(root)
        of, factor = told.get("scaled", (None, None))
        source = self.roots.get(self._group(place, of)) if of is not None else None
        if source is not None and not self.for_arm:
            return _scaled(source, factor, spec)
        return in_certain_ranges(spec, place.plan.certain.get(told["group"], []))

    def _group(self, place: Place, value: int) -> tuple[int, Any]:
        told = place.plan.values[value]
        return id(place.plan), f"held {value}" if told["held"] and not self._held(place, value) else told["group"]

    @staticmethod
    def _computes_quantised(node: Node, place: Place) -> bool:
        """As a call of the plan's, or as the batch norm after one."""
        call = place.call or next((c for c in place.plan.calls if node.name in c.get("exported", ())), None)
        return call is not None and call["codes"]

    def _reads(self, node: Node, place: Place) -> None:
        call, config = place.call, place.config
        if call is None or not call["codes"]:
            return
        operands = tensor_operands(node)
        if len(operands) != len(call["operands"]):
            return
        weights, dynamic = call.get("weights", {}), config.input_activation is not None and config.input_activation.is_dynamic
        if dynamic and not weights:
            return
        found: dict[Node, Any] = self.inputs.setdefault(node, {})
        for i, (operand, value) in enumerate(zip(operands, call["operands"])):
            if operand is None or operand in found:
                continue
            if str(i) in weights:
                found[operand] = self._weight(weights[str(i)], call, config)
            elif dynamic:
                if place.plan.codes(value):
                    found[operand] = config.input_activation
            elif self.for_arm and self._constant(operand) and node.target._schema.arguments[i].name != "bias":
                found[operand] = config.input_activation
            elif place.plan.codes(value):
                spec = self._operand(node, place, operand, value, call.get("reads", {}).get(str(i)))
                if spec is not None:
                    found[operand] = spec
        if not dynamic:
            self._bias(node, call, config, operands, found)
        if not found:
            del self.inputs[node]

    def _operand(self, node: Node, place: Place, operand: Node, value: int, reads: str | None) -> Any:
        codes = place.plan.codes(value)
        if reads is not None and reads != codes:
            if reads == "i16" and operand in self.outputs:
                return _widened(operand, None)
            return in_width(place.config.input_activation, reads)
        if self._held(place, value) and self._made_here(operand, value):
            return None  # the clamp that reads it has the scale
        at = (operand, node)
        return self._shared(place, value, at, in_width(place.config.input_activation, codes))

    def _held(self, place: Place, value: int) -> bool:
        """Has only the clamp that reads it a scale? ExecuTorch fuses it with what has weights, in 8 bits."""
        if not place.plan.values[value]["held"]:
            return False
        maker = next((c for c in place.plan.calls if value in c["results"]), None)
        return not self.for_arm or bool(maker and maker.get("weights") and place.plan.codes(value) == "i8")

    @staticmethod
    def _constant(operand: Node) -> bool:
        value = operand.meta.get("val")
        return operand.op == "get_attr" and isinstance(value, torch.Tensor) and value.dtype == torch.float32

    def _behind(self, node: Node) -> Place | None:
        """The place of what the node gives: its own, or of what it hands on."""
        place = node.meta.get(self.key)
        while place is not None and self._hands_on(node, place):
            node = node.all_input_nodes[0]
            place = node.meta.get(self.key)
        return place

    @staticmethod
    def _hands_on(node: Node, place: Place) -> bool:
        """Is it a call that changes nothing, which the plan therefore has not (dropout, clone)?"""
        known = place.call is not None or place.value is not None
        return not known and len(node.all_input_nodes) == 1 and isinstance(node.meta.get("val"), torch.Tensor)

    def _passes_quantised(self, node: Node) -> bool:
        place = node.meta[self.key]
        behind = self._behind(node) if self._hands_on(node, place) else None
        return behind is not None and behind.plan.codes(behind.value) is not None

    def _made_here(self, producer: Node, value: int) -> bool:
        place = self._behind(producer)
        maker = place and next((c for c in place.plan.calls if value in c["results"]), None)
        return bool(maker and maker["codes"] and place.config is not None)

    def _weight(self, weight: dict, call: dict, config: Any) -> Any:
        if "scale" in weight:
            return _fixed(weight["scale"])
        if weight["matrix"]:
            spec = in_width(activation_of(config), "i8")
            return spec
        return config.weight and along(config.weight, weight["axis"])

    @staticmethod
    def _bias(node: Node, call: dict, config: Any, operands: list, found: dict) -> None:
        weights = call.get("weights", {})
        if config.bias is None or "1" not in weights or len(operands) < 3 or operands[2] is None:
            return
        x, w, bias = operands[:3]
        if found.get(w) is not None and x in found and node.target._schema.arguments[2].name == "bias":
            per_channel = getattr(found[w], "qscheme", None) == torch.per_channel_symmetric
            found[bias] = bias_spec(node, x, w, per_channel)

    def _gives(self, node: Node, place: Place) -> None:
        value, plan = place.value, place.plan
        if value is None or plan.codes(value) is None or place.config.output_activation is None:
            return
        maker = next((c for c in plan.calls if value in c["results"]), None)
        if maker is None or not maker["codes"] or self._held(place, value):
            return
        self.outputs[node] = self._shared(place, value, node, in_width(place.config.output_activation, plan.codes(value)))
