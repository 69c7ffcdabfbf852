// SPDX-License-Identifier: Apache-2.0
// The table of TOSA operators, made from the files of ops/tosa/.
#include "ops/definitions/tosa_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/generated_list.h"
#include "ops/definitions/keeps_order.h"

namespace tosaic::tosa {

std::span<const ListEntry<Op>> tosa_list();  // generated

std::span<const Op> all() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list;
    for (const auto& entry : tosa_list()) list.push_back(entry.make());
    std::sort(list.begin(), list.end(), [](const Op& a, const Op& b) { return a.name < b.name; });
    return list;
  }();
  return ops;
}

bool Op::keeps_scales() const {
  const auto data = std::ranges::count_if(inputs, [](const Operand& o) { return o.type != "shape"; });
  return moves >= Moves::some && data == 1 && !inputs[0].list;
}

const Op* find(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Op*> map;
    for (const Op& op : all()) map.emplace(op.name, &op);
    return map;
  }();
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const Op* find(Operator op) {
  static const auto by_operator = [] {
    std::unordered_map<Operator, const Op*> map;
    for (const Op& definition : all()) map.emplace(Operator(fmt::format("tosa.{}", definition.name)), &definition);
    return map;
  }();
  auto found = by_operator.find(op);
  return found == by_operator.end() ? nullptr : found->second;
}

const Op* by_schema_number(std::uint16_t n) {
  static const auto by_number = [] {
    std::unordered_map<std::uint16_t, const Op*> map;
    for (const Op& op : all()) map.emplace(op.schema_number, &op);
    return map;
  }();
  auto found = by_number.find(n);
  return found == by_number.end() ? nullptr : found->second;
}

const Op* by_spirv_number(std::uint32_t n) {
  constexpr std::uint32_t none = 0xffff;
  static const auto by_number = [] {
    std::unordered_map<std::uint32_t, const Op*> map;
    for (const Op& op : all())
      if (op.spirv_number != none) map.emplace(op.spirv_number, &op);
    return map;
  }();
  auto found = by_number.find(n);
  return found == by_number.end() ? nullptr : found->second;
}

const std::vector<std::int64_t>& View::ints(std::string_view name) const {
  return node_.attrs.get<std::vector<std::int64_t>>(name);
}
bool View::all_are(std::string_view name, std::int64_t number) const {
  return std::ranges::all_of(ints(name), [&](std::int64_t n) { return n == number; });
}
std::int64_t View::integer(std::string_view name) const { return node_.attrs.get<std::int64_t>(name); }
bool View::flag(std::string_view name) const { return node_.attrs.get<bool>(name); }
const std::string& View::text(std::string_view name) const { return node_.attrs.get<std::string>(name); }
DType View::dtype(std::string_view name) const { return node_.attrs.get<DType>(name); }

std::optional<std::vector<std::int64_t>> View::constant_integers(std::size_t i) const {
  const Value& value = graph_[node_.inputs[i]];
  if (!value.is_constant() || value.constant.size() != value.type.storage_bytes()) return std::nullopt;
  std::vector<std::int64_t> result(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t k = 0; k < result.size(); ++k)
    result[k] = element_as_integer(value.type.dtype, value.constant.data(), k);
  return result;
}

namespace {
bool is_reshape(const View& view) {
  const Operator op = view.node().op;
  return op == op::reshape || op == op::identity ||
         (op == op::transpose && keeps_order(view.in(0).shape, view.ints("perms")));
}
}  // namespace

std::optional<Bytes> constant_result(const Graph& graph, const Node& node, const Op& op, const TensorType& type) {
  if (!op.eval) return std::nullopt;
  // Weights are large: what has the same bytes shares them.
  if (const View view(graph, node); is_reshape(view)) {
    const Bytes& content = graph[node.inputs[0]].constant;
    if (content.size() == type.storage_bytes()) return content;
  }
  std::vector<TensorView> in;
  for (ValueId v : node.inputs) in.push_back({graph[v].type, graph[v].constant.data()});
  std::byte* memory = nullptr;
  Bytes content = Bytes::fresh(type.storage_bytes(), memory);
  const MutableTensorView out{type, memory};
  if (!op.eval({View(graph, node), in, {&out, 1}}).ok()) return std::nullopt;
  return content;
}

}  // namespace tosaic::tosa
