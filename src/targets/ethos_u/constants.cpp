// SPDX-License-Identifier: Apache-2.0
// A constant together with a tensor of 8 or 16 bits in a sum: as 32-bit integers it keeps the whole sum in 32 bits, a
// command for each step. Where its values are what a RESCALE makes of quantised values of the tensor's own width (the
// lowering of sums sees to that), the quantised values become the constant, and all of it is one command.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

struct ScaledIntegers {
  Ints integers;
  std::int64_t quarters;  // constant = round(code * quarters / 4), ties up
};

std::int64_t rescaled(std::int64_t code, std::int64_t quarters) { return (code * quarters + 2) >> 2; }

std::optional<Ints> integers_in(std::span<const std::int32_t> values, std::int64_t quarters, std::int64_t highest) {
  Ints integers;
  for (std::int64_t v : values) {
    const std::int64_t code = std::llround(static_cast<double>(4 * v) / static_cast<double>(quarters));
    if (std::abs(code) > highest || rescaled(code, quarters) != v) return std::nullopt;
    integers.push_back(code);
  }
  return integers;
}

// For which odd number of quarters the values are such quantised values. The largest value has nearly all of the
// quantised values' bits, unless the step is the least one.
std::optional<ScaledIntegers> scaled_integers(const Value& value, DType width, std::int64_t most_quarters) {
  if (!value.is_constant() || value.type.dtype != DType::i32) return std::nullopt;
  const auto values = value.constant.as<std::int32_t>().first(static_cast<std::size_t>(value.type.shape.elements()));
  const std::int64_t highest = range_of(width).highest;
  std::int64_t largest = 0;
  for (std::int64_t v : values) largest = std::max(largest, std::abs(v));
  const std::int64_t last = std::min(4 * largest / (highest - 1) + 5, most_quarters);
  for (std::int64_t q = std::max<std::int64_t>(4 * largest / (highest + 1) | 1, 5); q <= last; q += 2)
    if (auto integers = integers_in(values, q, highest)) return ScaledIntegers{*std::move(integers), q};
  return std::nullopt;
}

// Does the RESCALE multiply by the largest factor that leaves a sum of this width in 32 bits? Vela has one command for
// that and any smaller factor next to it.
bool by_largest_factor(const Graph& graph, const Node& node, int up) {
  const tosa::View view(graph, node);
  const auto multiplier = view.constant_integers(1), shift = view.constant_integers(2);
  return multiplier && shift && multiplier->size() == 1 && multiplier->at(0) == std::int64_t{1} << 30 &&
         shift->at(0) == 30 - up && view.flag("scale32") && !view.flag("input_unsigned");
}

}  // namespace

void narrow_constants(Graph& graph) {
  std::vector<DType> narrow(graph.values.size(), DType::i32);  // what such a RESCALE reads
  const auto up_of = [](DType width) { return width == DType::i8 ? 19 : 14; };
  for (const Node& node : graph.nodes) {
    if (node.op != tosa::op::rescale || graph[node.outputs[0]].type.dtype != DType::i32) continue;
    const DType width = graph[node.inputs[0]].type.dtype;
    if ((width == DType::i8 || width == DType::i16) && by_largest_factor(graph, node, up_of(width)))
      narrow[node.outputs[0]] = width;
  }
  Rewriter out(graph);
  const auto constant = [&](DType type, std::int64_t value) {
    return graph.add_value("npu", {type, Shape{1}, {}}, constant_bytes(type, Ints{value}));
  };
  for (Node& node : out.nodes()) {
    if (node.op == tosa::op::add || node.op == tosa::op::sub)
      for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        const DType width = node.inputs[1 - i] < narrow.size() ? narrow[node.inputs[1 - i]] : DType::i32;
        if (width == DType::i32) continue;
        const Value value = graph[node.inputs[i]];
        const auto integers = scaled_integers(value, width, std::int64_t{4} << up_of(width));
        if (!integers) continue;
        const int free_bits = 30 - std::ilogb(static_cast<double>(integers->quarters));  // multipliers have 31
        const ValueId narrowed =
            graph.add_value(value.name, {width, value.type.shape, {}}, constant_bytes(width, integers->integers));
        node.inputs[i] = out.add(tosa::op::rescale,
                                 {narrowed, constant(DType::i32, integers->quarters << free_bits),
                                  constant(DType::i8, free_bits + 2), constant(width, 0), constant(DType::i32, 0)},
                                 {{"scale32", true},
                                  {"rounding_mode", std::string("single_round")},
                                  {"per_channel", false},
                                  {"input_unsigned", false},
                                  {"output_unsigned", false}},
                                 value.type, node.loc);
        break;
      }
    out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
