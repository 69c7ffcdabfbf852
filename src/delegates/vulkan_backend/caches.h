// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's operators of attention with caches, whose position is a number that the program computes, in PyTorch's
// operators of values.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace tosaic::vulkan_backend {

// Appends calls to a graph; what they give is what their operators give.
class Caches {
 public:
  Caches(Graph& graph, LocRef loc) : graph_(graph), loc_(std::move(loc)) {}

  // Element `index` along `dim` of a tensor of numbers, as one without dims.
  Result<ValueId> number(ValueId from, std::int64_t dim, std::int64_t index);
  // A cache (batch, places, heads, size) with `value` (batch, new, heads, size) from the place `start` on.
  Result<ValueId> updated(ValueId cache, ValueId value, ValueId start);
  // Of queries (batch, new, heads, size), which stand at `start` and on, to what stands there and before.
  Result<ValueId> attention(ValueId query, ValueId keys, ValueId values, ValueId start, std::optional<double> scale);

 private:
  Result<ValueId> call(Operator op, std::vector<ValueId> inputs, Attrs attrs);
  Status fits(std::int64_t count, ValueId cache) const;
  ValueId places(std::int64_t count, Shape shape);  // 0, 1, ...

  Graph& graph_;
  LocRef loc_;
};

}  // namespace tosaic::vulkan_backend
