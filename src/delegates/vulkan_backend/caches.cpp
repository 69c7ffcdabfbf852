// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_backend/caches.h"

#include <fmt/format.h>
#include <numeric>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/trial.h"

namespace tosaic::vulkan_backend {

Result<ValueId> Caches::call(Operator op, std::vector<ValueId> inputs, Attrs attrs) {
  Node node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.loc = loc_;
  TOSAIC_TRY(const Trial trial, try_node(graph_, node));
  const ValueId made =
      graph_.add_value(fmt::format("{}_{}", loc_->name, graph_.values.size()), trial.graph[trial.results[0]].type);
  node.outputs = {made};
  graph_.nodes.push_back(std::move(node));
  return made;
}

Status Caches::fits(std::int64_t count, ValueId cache) const {
  const std::int64_t all = graph_[cache].type.shape.size(1);
  if (count <= all) return {};
  return error("vulkan-backend.arguments", fmt::format("{} positions in a cache of {}", count, all));
}

ValueId Caches::places(std::int64_t count, Shape shape) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return graph_.add_value(fmt::format("{}_places_{}", loc_->name, graph_.values.size()),
                          {DType::i32, std::move(shape), {}}, constant_bytes(DType::i32, numbers));
}

Result<ValueId> Caches::number(ValueId from, std::int64_t dim, std::int64_t index) {
  TOSAIC_TRY(const ValueId chosen, call(aten::op::select_int, {from}, {{"dim", dim}, {"index", index}}));
  return call(aten::op::reshape, {chosen}, {{"shape", std::vector<std::int64_t>()}});
}

Result<ValueId> Caches::updated(ValueId cache, ValueId value, ValueId start) {
  const std::int64_t count = graph_[value].type.shape.size(1);
  TOSAIC_CHECK(fits(count, cache));
  TOSAIC_TRY(const ValueId at, call(aten::op::add_Tensor, {places(count, Shape({count})), start}, {}));
  return call(aten::op::index_copy, {cache, at, value}, {{"dim", std::int64_t{1}}, {"distinct", true}});
}

Result<ValueId> Caches::attention(ValueId query, ValueId keys, ValueId values, ValueId start,
                                  std::optional<double> scale) {
  const std::int64_t count = graph_[query].type.shape.size(1), all = graph_[keys].type.shape.size(1);
  TOSAIC_CHECK(fits(count, keys));
  TOSAIC_TRY(const ValueId at, call(aten::op::add_Tensor, {places(count, Shape({count, 1})), start}, {}));
  TOSAIC_TRY(const ValueId shown, call(aten::op::le_Tensor, {places(all, Shape({1, all})), at}, {}));
  const auto heads_first = [&](ValueId v) {
    return call(aten::op::transpose_int, {v}, {{"dim0", std::int64_t{1}}, {"dim1", std::int64_t{2}}});
  };
  TOSAIC_TRY(const ValueId q, heads_first(query));
  TOSAIC_TRY(const ValueId k, heads_first(keys));
  TOSAIC_TRY(const ValueId v, heads_first(values));
  Attrs attrs{{"enable_gqa", true}};
  if (scale) attrs.set("scale", *scale);
  TOSAIC_TRY(const ValueId seen, call(aten::op::scaled_dot_product_attention, {q, k, v, shown}, std::move(attrs)));
  return heads_first(seen);
}

}  // namespace tosaic::vulkan_backend
