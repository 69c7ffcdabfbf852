# SPDX-License-Identifier: Apache-2.0
"""What a quantizer gives to tensors: torchao's specs of activations, weights and biases, by ExecuTorch's names."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Callable

import torch
from torchao.quantization.pt2e import (FakeQuantize, FusedMovingAvgObsFakeQuantize, HistogramObserver, MinMaxObserver,
                                       MovingAverageMinMaxObserver, PerChannelMinMaxObserver, PlaceholderObserver)
from torchao.quantization.pt2e.quantizer import DerivedQuantizationSpec, QuantizationSpec

_FINEST = torch.finfo(torch.float32).eps  # the least scale of what the user did not configure


@dataclass(frozen=True)
class QuantizationConfig:
    """Specs of one kind of quantisation; None: that stays float.

    Attributes:
        input_activation, output_activation: per tensor, int8 or int16 (uint8: for `set_io`).
        weight: symmetric, per tensor or per channel.
        bias: not None: biases are int32 on the scale of their accumulator.
        label: for reports.
    """

    input_activation: Any
    output_activation: Any
    weight: Any
    bias: Any
    label: str | None = None

    def get_input_act_qspec(self, node=None, input_node=None):
        """The spec of what a call reads."""
        return self.input_activation

    def get_output_act_qspec(self, node=None):
        """The spec of what a call gives."""
        return self.output_activation

    def get_weight_qspec(self, node=None):
        """The spec of a call's weight."""
        return self.weight

    def get_bias_qspec(self, node=None):
        """The spec of a call's bias."""
        return self.bias(node) if callable(self.bias) and node is not None else self.bias


def bias_spec(call, activation, weight, per_channel: bool) -> DerivedQuantizationSpec:
    """int32 on the accumulator's scale: that of the activation times that of the weight."""

    def scales(observers):
        a, w = (o.calculate_qparams()[0] for o in observers)
        return (a * w).to(torch.float32), torch.zeros_like(w, dtype=torch.int32)

    kinds = {"qscheme": torch.per_channel_symmetric, "ch_axis": 0} if per_channel else {
        "qscheme": torch.per_tensor_symmetric}
    return DerivedQuantizationSpec(derived_from=[(activation, call), (weight, call)], derive_qparams_fn=scales,
                                   dtype=torch.int32, quant_min=-(2**31) + 1, quant_max=2**31 - 1, **kinds)


def _call_bias(per_channel: bool, call):
    return bias_spec(call, call.args[0], call.args[1], per_channel)


def _activation_observer(is_qat: bool, is_dynamic: bool, eps: float) -> Callable:
    if is_qat and is_dynamic:
        return FakeQuantize.with_args(observer=MovingAverageMinMaxObserver.with_args(averaging_constant=1), eps=eps)
    if is_qat:
        return FusedMovingAvgObsFakeQuantize.with_args(eps=eps)
    return (PlaceholderObserver if is_dynamic else HistogramObserver).with_args(eps=eps)


def _weight_spec(is_per_channel: bool, is_qat: bool, qmin: int, qmax: int, eps: float) -> QuantizationSpec:
    scheme = torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric
    observer = PerChannelMinMaxObserver if is_per_channel else MinMaxObserver
    if is_qat and is_per_channel:
        made = FakeQuantize.with_args(observer=observer, quant_min=qmin, quant_max=qmax, dtype=torch.qint8, qscheme=scheme,
                                      reduce_range=False, ch_axis=0, eps=eps)
    elif is_qat:
        made = FakeQuantize.with_args(observer=observer, eps=eps)
    else:
        made = observer.with_args(eps=eps)
    return QuantizationSpec(dtype=torch.int8, quant_min=qmin, quant_max=qmax, qscheme=scheme, ch_axis=0, is_dynamic=False,
                            observer_or_fake_quant_ctr=made)


@functools.lru_cache
def get_symmetric_quantization_config(is_per_channel: bool = True, is_qat: bool = False, is_dynamic: bool = False,
                                      act_qmin: int = -128, act_qmax: int = 127, weight_qmin: int = -127,
                                      weight_qmax: int = 127, eps: float = 2**-16) -> QuantizationConfig:
    """int8: activations with a zero point anywhere, symmetric weights, int32 biases.

    Args:
        is_per_channel: weights have one scale per output channel.
        is_qat: fake quantisers to train with, instead of observers.
        is_dynamic: activations get their scales as the program runs; only what has weights is quantised then.
        act_qmin, act_qmax, weight_qmin, weight_qmax: the quantised values that are used; weights from -7 to 7 are
        stored in 4 bits. eps: the least scale.
    """
    activation = QuantizationSpec(dtype=torch.int8, quant_min=act_qmin, quant_max=act_qmax,
                                  qscheme=torch.per_tensor_affine, is_dynamic=is_dynamic,
                                  observer_or_fake_quant_ctr=_activation_observer(is_qat, is_dynamic, eps))
    return QuantizationConfig(
        activation, None if is_dynamic else activation,
        _weight_spec(is_per_channel, is_qat, weight_qmin, weight_qmax, eps),
        functools.partial(_call_bias, is_per_channel),
        f"int8 [{act_qmin}, {act_qmax}], weights [{weight_qmin}, {weight_qmax}]{', QAT' if is_qat else ''}")


def get_symmetric_a8w4_quantization_config(is_per_channel: bool = True, is_qat: bool = True,
                                           is_dynamic: bool = False) -> QuantizationConfig:
    """int8 activations and 4-bit weights: `get_symmetric_quantization_config` with weights from -7 to 7."""
    return get_symmetric_quantization_config(is_per_channel, is_qat, is_dynamic, weight_qmin=-7, weight_qmax=7)


@functools.lru_cache
def get_symmetric_a16w8_quantization_config(is_per_channel: bool = True, is_qat: bool = False, is_dynamic: bool = False,
                                            weight_qmin: int = -127, weight_qmax: int = 127,
                                            epsilon: float = 2**-12) -> QuantizationConfig:
    """int16 activations, symmetric, and int8 weights.

    Args:
        is_per_channel, is_qat, is_dynamic, weight_qmin, weight_qmax: as of `get_symmetric_quantization_config`.
        epsilon: the least scale of an activation.
    """
    activation = QuantizationSpec(dtype=torch.int16, quant_min=-32767, quant_max=32767,
                                  qscheme=torch.per_tensor_symmetric, is_dynamic=is_dynamic,
                                  observer_or_fake_quant_ctr=_activation_observer(is_qat, is_dynamic, epsilon))
    return QuantizationConfig(
        activation, None if is_dynamic else activation,
        _weight_spec(is_per_channel, is_qat, weight_qmin, weight_qmax, 2**-16),
        functools.partial(_call_bias, is_per_channel), f"int16, weights [{weight_qmin}, {weight_qmax}]")


@functools.lru_cache
def get_uint8_io_quantization_config(is_qat: bool = False, is_dynamic: bool = False,
                                     eps: float = 2**-16) -> QuantizationConfig:
    """uint8 for what a program takes and gives: for `set_io`."""
    activation = QuantizationSpec(dtype=torch.uint8, quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine,
                                  is_dynamic=is_dynamic,
                                  observer_or_fake_quant_ctr=_activation_observer(is_qat, is_dynamic, eps))
    return QuantizationConfig(activation, activation, None, None, "uint8")


def get_vgf_snorm_quantization_config(is_per_channel: bool = True, is_qat: bool = False, weight_qmin: int = -127,
                                      weight_qmax: int = 127, eps: float = 2**-16) -> QuantizationConfig:
    """int8 with activations from -127 to 127, as signed normalised images have them."""
    return get_symmetric_quantization_config(is_per_channel, is_qat, act_qmin=-127, act_qmax=127, weight_qmin=weight_qmin,
                                             weight_qmax=weight_qmax, eps=eps)


def _class_of(observer: Any) -> tuple[Any, dict]:
    """An observer's class and what it is made with."""
    given: dict = {}
    while hasattr(observer, "p"):  # torchao's PartialWrapper
        given = {**observer.p.keywords, **given}
        observer = observer.p.func
    return observer, given


def _made_with(observer: Any, **more: Any) -> Any:
    kind, given = _class_of(observer)
    return kind.with_args(**{**given, **more})


def activation_of(config) -> QuantizationSpec:
    """What tensors get of a configuration."""
    return config.output_activation if config.output_activation is not None else config.input_activation


def form_of(config) -> str:
    """What a plan calls it: float, int8 or int16x8."""
    if config is None or activation_of(config) is None:
        return "float"
    return "int16x8" if activation_of(config).dtype == torch.int16 else "int8"


def _is_fake(spec: QuantizationSpec) -> bool:
    return "Fake" in _class_of(spec.observer_or_fake_quant_ctr)[0].__name__


def is_trained(config) -> bool:
    """Does it round weights while they are trained?"""
    weight = getattr(config, "weight", None)
    return isinstance(weight, QuantizationSpec) and _is_fake(weight)


def in_width(spec: QuantizationSpec, codes: str) -> QuantizationSpec:
    """The spec for `i8` or `i16`: itself, or one with the same observer for the other width."""
    if codes == ("i16" if spec.dtype == torch.int16 else "i8"):
        return spec
    observer = _made_with(spec.observer_or_fake_quant_ctr, eps=_FINEST)
    if codes == "i16":
        return replace(spec, dtype=torch.int16, quant_min=-32767, quant_max=32767, qscheme=torch.per_tensor_symmetric,
                       observer_or_fake_quant_ctr=observer)
    return replace(spec, dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_affine,
                   observer_or_fake_quant_ctr=observer)


class _AtLeast(MinMaxObserver):
    """What is seen, and `ranges`: (lowest, highest, how many times what is seen they are at most; None: any)."""

    def __init__(self, ranges=(), **kwargs):
        super().__init__(**kwargs)
        self.ranges = ranges

    def calculate_qparams(self):
        low, high = self.min_val, self.max_val
        if torch.isinf(low).any():
            return super().calculate_qparams()
        largest = torch.maximum(-low, high)
        for lowest, highest, most in self.ranges:
            room = torch.full_like(largest, math.inf) if most is None else most * largest
            low = torch.minimum(low, torch.clamp(-room, min=lowest))
            high = torch.maximum(high, torch.clamp(room, max=highest))
        return self._calculate_qparams(low, high)


def in_certain_ranges(spec: Any, ranges: list) -> Any:
    """The spec with an observer of what is seen and of these, where there are any."""
    if not ranges or not isinstance(spec, QuantizationSpec) or spec.is_dynamic:
        return spec
    given = {"ranges": tuple(map(tuple, ranges)), "eps": _FINEST}
    made = FakeQuantize.with_args(observer=_AtLeast, **given) if _is_fake(spec) else _AtLeast.with_args(**given)
    return replace(spec, observer_or_fake_quant_ctr=made)


def along(weight: QuantizationSpec, axis: int) -> QuantizationSpec:
    """A weight's spec with one scale per index of `axis`; -1: one scale."""
    if weight.qscheme != torch.per_channel_symmetric or weight.ch_axis == axis:
        return weight
    if axis >= 0:
        return replace(weight, ch_axis=axis,
                       observer_or_fake_quant_ctr=_made_with(weight.observer_or_fake_quant_ctr, ch_axis=axis))
    made = FakeQuantize.with_args(observer=MinMaxObserver) if _is_fake(weight) else MinMaxObserver
    return replace(weight, qscheme=torch.per_tensor_symmetric, ch_axis=None, observer_or_fake_quant_ctr=made)
