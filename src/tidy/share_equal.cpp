// SPDX-License-Identifier: Apache-2.0
// Value numbering: equal constants become one, then equal nodes on equal operands do.
#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

void append(std::string& key, const Attr& attr) {
  std::visit(
      [&]<class T>(const T& a) {
        if constexpr (std::is_same_v<T, std::monostate>)
          key += "none";
        else if constexpr (std::is_same_v<T, bool>)
          key += a ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::int64_t>)
          key += fmt::format("i{}", a);
        else if constexpr (std::is_same_v<T, double>)
          key += fmt::format("d{}", std::bit_cast<std::uint64_t>(a));
        else if constexpr (std::is_same_v<T, std::string>)
          key += a;
        else if constexpr (std::is_same_v<T, DType>)
          key += name_of(a);
        else if constexpr (std::is_same_v<T, SymbolicArgument>)
          key += a.name + (a.size ? ranged_text(*a.size) : "");
        else if constexpr (std::is_same_v<T, std::vector<SymbolicArgument>>)
          for (const auto& x : a) key += x.name + (x.size ? ranged_text(*x.size) : "") + ",";
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          for (const auto& x : a) key += x + ",";
        else
          for (const auto& x : a) key += fmt::format("{},", x);
      },
      attr);
}

std::string key_of(const Graph& graph, const Node& node) {
  std::string key = node.op.text();
  for (ValueId v : node.inputs) key += fmt::format(" {}", v);
  for (const auto& [name, attr] : node.attrs) {
    key += " " + name + "=";
    append(key, attr);
  }
  return key + ":" + to_string(graph[node.outputs[0]].type.with(std::optional<Scales>{}));
}

}  // namespace

bool share_equal(Graph& graph) {
  Forward forward;
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  std::unordered_multimap<std::uint64_t, ValueId> constants;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph[v];
    if (!value.is_constant() || is_output[v]) continue;
    // Few constants have the same size and both ends: looking at more would read all weights in every round.
    const std::size_t size = value.constant.size(), end = std::min<std::size_t>(size, 64);
    std::uint64_t hash = hash_of(value.constant.data(), end, size * 64 + static_cast<std::uint64_t>(value.type.dtype));
    hash = hash_of(value.constant.data() + size - end, end, hash);
    auto [first, last] = constants.equal_range(hash);
    bool shared = false;
    for (auto it = first; it != last && !shared; ++it) {
      const Value& other = graph[it->second];
      if (other.type.dtype == value.type.dtype && other.type.shape == value.type.shape &&
          other.constant == value.constant) {
        forward.set(v, it->second);
        shared = true;
      }
    }
    if (!shared) constants.emplace(hash, v);
  }
  std::unordered_map<std::string, ValueId> seen;
  for (Node& node : graph.nodes) {
    forward.operands(node);
    if (node.outputs.size() != 1 || !node.regions.empty() || tosa::is_variable(node.op) || node.op == tosa::op::custom)
      continue;
    auto [it, fresh] = seen.emplace(key_of(graph, node), node.outputs[0]);
    if (!fresh && !is_output[node.outputs[0]]) forward.set(node.outputs[0], it->second);
  }
  if (!forward.changed()) return false;
  for (Node& node : graph.nodes) forward.operands(node);
  drop_dead(graph);
  return true;
}

}  // namespace tosaic
