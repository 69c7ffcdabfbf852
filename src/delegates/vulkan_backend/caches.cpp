// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_backend/caches.h"

#include <fmt/format.h>
#include <numeric>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/tensor.h"
#include "ops/lowering/calls.h"

namespace tosaic::vulkan_backend {

Caches::Caches(Graph& graph, LocRef loc)
    : graph_(graph),
      c_(graph, [this](Operator) { return fmt::format("{}_{}", c_.loc()->name, graph_.values.size()); }) {
  c_.set_loc(std::move(loc));
  c_.fold(false);
}

Val Caches::places(std::int64_t count, Shape shape, ValueId cache) {
  if (const std::int64_t all = graph_[cache].type.shape.size(1); count > all)
    c_.refuse("vulkan-backend.arguments", fmt::format("{} positions in a cache of {}", count, all));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return c_.value(graph_.add_value(fmt::format("{}_places_{}", c_.loc()->name, graph_.values.size()),
                                   {DType::i32, std::move(shape), {}}, constant_bytes(DType::i32, numbers)));
}

ValueId Caches::number(ValueId from, std::int64_t dim, std::int64_t index) {
  const Val chosen = c_.aten(aten::op::select_int, {c_.value(from)}, {{"dim", dim}, {"index", index}});
  return c_.aten(aten::op::reshape, {chosen}, {{"shape", std::vector<std::int64_t>()}}).id();
}

ValueId Caches::updated(ValueId cache, ValueId value, ValueId start) {
  const std::int64_t count = graph_[value].type.shape.size(1);
  const Val at = calls::add(places(count, Shape({count}), cache), c_.value(start));
  return c_
      .aten(aten::op::index_copy, {c_.value(cache), at, c_.value(value)},
            {{"dim", std::int64_t{1}}, {std::string(mark::distinct.name), true}})
      .id();
}

ValueId Caches::attention(ValueId query, ValueId keys, ValueId values, ValueId start, std::optional<double> scale) {
  const std::int64_t count = graph_[query].type.shape.size(1), all = graph_[keys].type.shape.size(1);
  const Val at = calls::add(places(count, Shape({count, 1}), keys), c_.value(start));
  const Val shown = c_.aten(aten::op::le_Tensor, {places(all, Shape({1, all}), keys), at});
  const auto heads_first = [&](Val v) { return calls::transpose(v, 1, 2); };
  const Val q = heads_first(c_.value(query)), k = heads_first(c_.value(keys)), v = heads_first(c_.value(values));
  Attrs attrs{{"enable_gqa", true}};
  if (scale) attrs.set("scale", *scale);
  return heads_first(c_.aten(aten::op::scaled_dot_product_attention, {q, k, v, shown}, std::move(attrs))).id();
}

}  // namespace tosaic::vulkan_backend
