// SPDX-License-Identifier: Apache-2.0
// rescale(rescale(x)) where the first only widens: i8 or i16 to i32 times a power of two, no saturation.
//   ((x - zp) * 2^k) * m >> s  ==  (x - zp) * m >> (s - k)     exactly, rounding included.
#include <bit>

#include "tidy/tidy.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {

struct Factor {
  std::int64_t multiplier, shift;
};

std::optional<Factor> single_factor(const Graph& graph, const Node& node) {
  const Value &m = graph[node.inputs[1]], &s = graph[node.inputs[2]];
  if (!m.is_constant() || !s.is_constant() || m.type.shape.elements() != 1) return std::nullopt;
  std::int64_t multiplier =
      m.type.dtype == DType::i16 ? m.constant.as<std::int16_t>()[0] : m.constant.as<std::int32_t>()[0];
  return Factor{multiplier, m.type.shape.elements() == 1 ? s.constant.as<std::int8_t>()[0] : 0};
}

bool all_zero(const Value& v) {
  if (!v.is_constant()) return false;
  for (std::byte b : v.constant.as<std::byte>())
    if (b != std::byte{0}) return false;
  return true;
}

// The k of an exact widening by 2^k, or nothing.
std::optional<int> widening(const Graph& graph, const Node& node) {
  DType from = graph[node.inputs[0]].type.dtype;
  if (graph[node.outputs[0]].type.dtype != DType::i32 || (from != DType::i8 && from != DType::i16)) return std::nullopt;
  if (node.attrs.get_or("input_unsigned", false) || node.attrs.get_or("output_unsigned", false) ||
      !all_zero(graph[node.inputs[4]]))
    return std::nullopt;
  auto f = single_factor(graph, node);
  if (!f || f->multiplier <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(f->multiplier))) return std::nullopt;
  int k = std::countr_zero(static_cast<std::uint64_t>(f->multiplier)) - static_cast<int>(f->shift);
  int bits = from == DType::i8 ? 9 : 17;
  if (k < 0 || bits + k > 31) return std::nullopt;
  return k;
}

}  // namespace

bool merge_rescales(Graph& graph) {
  auto made_by = producers(graph);
  bool changed = false;
  const std::size_t count = graph.nodes.size();
  for (std::size_t n = 0; n < count; ++n) {
    Node& second = graph.nodes[n];
    if (second.op != tosa::op::rescale || graph[second.inputs[0]].type.dtype != DType::i32) continue;
    std::int32_t p = second.inputs[0] < made_by.size() ? made_by[second.inputs[0]] : -1;
    if (p < 0 || graph.nodes[static_cast<std::size_t>(p)].op != tosa::op::rescale ||
        !second.attrs.get<bool>("scale32") || second.attrs.get<std::string>("rounding_mode") != "single_round" ||
        second.attrs.get<bool>("input_unsigned"))
      continue;
    const Node& first = graph.nodes[static_cast<std::size_t>(p)];
    auto k = widening(graph, first);
    const Value& shift = graph[second.inputs[2]];
    if (!k || !shift.is_constant()) continue;
    std::vector<std::int8_t> shifts(shift.constant.as<std::int8_t>().begin(), shift.constant.as<std::int8_t>().end());
    bool possible = true;
    for (auto& s : shifts) {
      s = static_cast<std::int8_t>(s - *k);
      possible &= s >= 2;
    }
    if (!possible) continue;
    TensorType type = shift.type;
    second.inputs[2] =
        graph.add_value(shift.name + "." + std::to_string(graph.values.size()), type, Bytes::of(std::move(shifts)));
    second.inputs[0] = first.inputs[0];
    second.inputs[3] = first.inputs[3];
    changed = true;
  }
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
