// SPDX-License-Identifier: Apache-2.0
// PyTorch counts in int64, TOSA 1.0 in int32. Constants are narrowed where every element fits; what is computed
// from them is narrowed with them; int64 inputs and outputs keep their type behind explicit conversions.
#include <fmt/format.h>
#include <algorithm>

#include "ir/tensor.h"
#include "normalise/normalise.h"

namespace tosaic {
namespace {

bool fits_i32(const Value& value) {
  auto elements = value.constant.as<std::int64_t>();
  return std::all_of(elements.begin(), elements.end(), [](std::int64_t e) { return e >= INT32_MIN && e <= INT32_MAX; });
}

Node conversion(ValueId from, ValueId to, DType dtype, LocRef loc) {
  Node node;
  node.op = "aten._to_copy.default";
  node.inputs = {from};
  node.outputs = {to};
  node.attrs.set("dtype", dtype);
  node.loc = std::move(loc);
  return node;
}

}  // namespace

Status narrow_integers(Graph& graph, const Sink& sink, std::vector<std::string>* names) {
  std::vector<Node> conversions;
  std::vector<ValueId> replaced(graph.values.size());
  for (ValueId v = 0; v < replaced.size(); ++v) replaced[v] = v;
  std::vector<char> is_input(graph.values.size(), 0);
  for (ValueId v : graph.inputs) is_input[v] = 1;

  const auto count = static_cast<ValueId>(graph.values.size());
  std::vector<char> narrowed(count, 0);  // results of nodes
  for (ValueId v = 0; v < count; ++v) {
    if (graph[v].type.dtype != DType::i64) continue;
    if (is_input[v]) {
      ValueId narrow = graph.add_value(graph[v].name + ".i32", graph[v].type.with(DType::i32));
      conversions.push_back(conversion(v, narrow, DType::i32, nullptr));
      replaced[v] = narrow;
      auto note =
          warning("model.int64-input", fmt::format("input '{}' is int64 and is computed with as int32", graph[v].name));
      note.severity = Severity::note;
      if (sink) sink(std::move(note));
    } else if (graph[v].is_constant()) {
      if (!fits_i32(graph[v])) continue;
      graph[v].constant = converted({graph[v].type, graph[v].constant.data()}, DType::i32);
      graph[v].type.dtype = DType::i32;
    } else {
      graph[v].type.dtype = DType::i32;
      narrowed[v] = 1;
      if (names) names->push_back(graph[v].name);
    }
  }
  for (Node& node : graph.nodes) {
    for (ValueId& v : node.inputs)
      if (v != no_value && v < count) v = replaced[v];
    for (const auto& [name, attr] : Attrs(node.attrs))
      if (const auto* t = std::get_if<DType>(&attr); t && *t == DType::i64) node.attrs.set(name, DType::i32);
  }
  for (ValueId& v : graph.outputs)
    if (v < count && narrowed[v]) {
      ValueId wide = graph.add_value(graph[v].name + ".i64", graph[v].type.with(DType::i64));
      graph.nodes.push_back(conversion(v, wide, DType::i64, nullptr));
      v = wide;
    }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(conversions.begin()),
                     std::make_move_iterator(conversions.end()));
  return {};
}

}  // namespace tosaic
