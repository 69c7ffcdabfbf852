// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's operators of attention with caches, whose position is a number that the program computes, in PyTorch's
// operators of values.
#pragma once
#include <optional>

#include "ops/composer.h"

namespace tosaic::vulkan_backend {

// Appends calls to a graph. All of them throw Refusal.
class Caches {
 public:
  Caches(Graph& graph, LocRef loc);

  // Element `index` along `dim` of a tensor of numbers, as one without dims.
  ValueId number(ValueId from, std::int64_t dim, std::int64_t index);
  // A cache (batch, positions, heads, size) with `value` (batch, new, heads, size) from the place `start` on.
  ValueId updated(ValueId cache, ValueId value, ValueId start);
  // Of queries (batch, new, heads, size), which stand at `start` and on, to what stands there and before.
  ValueId attention(ValueId query, ValueId keys, ValueId values, ValueId start, std::optional<double> scale);

 private:
  Val places(std::int64_t count, Shape shape, ValueId cache);  // 0, 1, ..., which it has to have

  Graph& graph_;
  Composer c_;
};

}  // namespace tosaic::vulkan_backend
