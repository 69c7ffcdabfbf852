// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/conversion.h"

#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

Node conversion(Operator op, const TensorType& type, ValueId from, ValueId to, LocRef loc) {
  const IntegerRange limits = quantised_range(type);
  const Attrs attrs{{"scale", type.scales->scale[0]},
                    {"zero_point", type.scales->zero_point[0]},
                    {"quant_min", limits.lowest},
                    {"quant_max", limits.highest},
                    {"dtype", type.dtype}};
  return {op, {from}, attrs, {to}, std::move(loc), {}};
}

// Weights may have a scale for each index along an axis.
Bytes real_constant(const Value& value) {
  const Scales& s = *value.type.scales;
  std::size_t inner = 1, channels = s.scale.size();
  for (int i = s.axis + 1; s.axis >= 0 && i < value.type.rank(); ++i)
    inner *= static_cast<std::size_t>(value.type.shape.size(i));
  std::vector<double> reals(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const std::size_t c = s.per_tensor() ? 0 : i / inner % channels;
    const std::int64_t code = element_as_integer(value.type.dtype, value.constant.data(), i);
    reals[i] = s.scale[c] * static_cast<double>(code - s.zero_point[c]);
  }
  return constant_bytes(DType::f32, reals);
}

}  // namespace

Node quantise_node(const TensorType& type, ValueId real, ValueId quantised_value, LocRef loc) {
  return conversion(quantized_decomposed::op::quantize_per_tensor, type, real, quantised_value, std::move(loc));
}
Node dequantise_node(const TensorType& type, ValueId quantised_value, ValueId real, LocRef loc) {
  return conversion(quantized_decomposed::op::dequantize_per_tensor, type, quantised_value, real, std::move(loc));
}

Bytes quantise_constant(const Value& value, const TensorType& type) {
  const Bytes reals = value.type.quantised() ? real_constant(value) : value.constant;
  const DType dtype = value.type.quantised() ? DType::f32 : value.type.dtype;
  const auto limits = quantised_range(type);
  const auto zero = static_cast<double>(type.scales->zero_point[0]);
  std::vector<std::int64_t> result(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double real = element_as_double(dtype, reals.data(), i);
    const double code = std::isnan(real) ? zero : std::nearbyint(real / type.scales->scale[0]) + zero;
    result[i] = static_cast<std::int64_t>(
        std::clamp(code, static_cast<double>(limits.lowest), static_cast<double>(limits.highest)));
  }
  return constant_bytes(type.dtype, result);
}

void FloatCalls::keep(Node node) {
  const auto is_quantised = [&](ValueId v) { return v != no_value && graph_[v].type.quantised(); };
  for (ValueId& v : node.inputs)
    if (is_quantised(v)) v = real(v, node.loc);
  out_.keep(
      std::move(node),
      [&](ValueId v) {
        return is_quantised(v) ? graph_.add_value(graph_[v].name + ".real", {DType::f32, graph_[v].type.shape, {}}) : v;
      },
      [&](ValueId real, ValueId quantised_value, const LocRef& loc) {
        out_.keep(quantise_node(graph_[quantised_value].type, real, quantised_value, loc));
      });
}

ValueId FloatCalls::real(ValueId quantised_value, const LocRef& loc) {
  auto [known, fresh] = reals_.try_emplace(quantised_value, no_value);
  if (!fresh) return known->second;
  const Value& value = graph_[quantised_value];
  const ValueId made = known->second = graph_.add_value(value.name + ".float", {DType::f32, value.type.shape, {}},
                                                        value.is_constant() ? real_constant(value) : Bytes());
  if (!value.is_constant()) out_.keep(dequantise_node(value.type, quantised_value, made, loc));
  return made;
}

}  // namespace tosaic
