// SPDX-License-Identifier: Apache-2.0
// Python's slices and view sizes, for the operator files under aten/.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {

// The dim that a slicing operator names; scalars have none.
inline int sliced_axis(Builder& b, const Call& call, Val x) {
  if (x.rank() == 0) b.refuse("aten." + call.schema().name + ".rank", call.schema().name + " of a scalar");
  return call.axis("dim", x.rank());
}

// x[start : start + count * step : step] along one axis. TOSA's SLICE has no step: windows of `step` elements
// are concatenated and one column is kept.
inline Val strided_slice(Val x, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  Builder& b = x.builder();
  if (step == 1 || count <= 1) return b.slice_axis(x, axis, start, count);
  const std::int64_t length = count * step, room = x.dim(axis);
  // Where the windows begin: `column` elements before the first one that is wanted, such that the last fits.
  const std::int64_t column = std::clamp<std::int64_t>(start + length - room, 0, std::min(start, step - 1));
  if (const std::int64_t missing = start - column + length - room; missing > 0) {
    std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank()), 0), after = before;
    after[static_cast<std::size_t>(axis)] = missing;
    x = b.pad(x, before, after, 0.0);
  }
  x = b.slice_axis(x, axis, start - column, length);
  auto dims = x.shape().sizes();
  dims[static_cast<std::size_t>(axis)] = count;
  auto windows = dims;
  windows.insert(windows.begin() + axis + 1, step);
  return b.reshape(b.slice_axis(b.reshape(x, Shape(windows)), axis + 1, column, 1), Shape(dims));
}

// Python's slice bounds, clamped into a dim of `size` elements.
struct SliceRange {
  std::int64_t start, count, step;
};
inline SliceRange slice_range(Builder& b, const Call& call, std::int64_t size) {
  const std::int64_t step = call.integer("step");
  if (step < 1) b.refuse("aten.slice.step", "step " + std::to_string(step) + " must be at least 1");
  auto bound = [&](std::string_view name, std::int64_t otherwise) {
    if (!call.has(name)) return otherwise;
    std::int64_t v = call.integer(name);
    return std::clamp<std::int64_t>(v < 0 ? v + size : v, 0, size);
  };
  const std::int64_t start = bound("start", 0), end = std::max(bound("end", size), start);
  if (end == start)
    b.refuse("aten.slice.empty",
             "the slice from " + std::to_string(start) + " of " + std::to_string(size) + " elements is empty");
  return {start, (end - start - 1) / step + 1, step};
}

// An index of Python's into `size` elements: negative ones count from the end.
inline std::int64_t python_index(Builder& b, const Call& call, std::string_view name, std::int64_t size) {
  const std::int64_t i = call.integer(name);
  if (i < -size || i >= size)
    b.refuse("aten." + call.schema().name + ".index",
             "index " + std::to_string(i) + " is outside a dim of " + std::to_string(size));
  return i < 0 ? i + size : i;
}

// A list of sizes, one of which may be -1, for a tensor of that many elements.
inline Shape inferred_shape(Builder& b, std::vector<std::int64_t> sizes, std::int64_t elements) {
  std::int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1)
      unknown = static_cast<std::int64_t>(i);
    else if (__builtin_mul_overflow(known, sizes[i], &known))
      b.refuse("aten.reshape-size", "the sizes ask for more elements than can be counted");
  }
  if (unknown >= 0) {
    if (known == 0 || elements % known)
      b.refuse("aten.reshape-size",
               std::to_string(elements) + " elements do not divide into rows of " + std::to_string(known));
    sizes[static_cast<std::size_t>(unknown)] = elements / known;
  }
  return Shape(std::move(sizes));
}

// The inverse way round: the parts of x along `axis`, one after the other.
inline Vals split_at(Val x, int axis, const std::vector<std::int64_t>& sizes) {
  Builder& b = x.builder();
  std::int64_t total = 0;
  for (auto s : sizes)
    if (__builtin_add_overflow(total, s, &total))
      b.refuse("aten.split.sizes", "the parts are more than can be counted");
  if (total != x.dim(axis))
    b.refuse("aten.split.sizes",
             "parts of " + std::to_string(total) + " in all for a dim of " + std::to_string(x.dim(axis)));
  Vals parts;
  std::int64_t start = 0;
  for (auto s : sizes) {
    if (s == 0) b.refuse("aten.split.empty", "a part of the split is empty");
    parts.push_back(b.slice_axis(x, axis, start, s));
    start += s;
  }
  return parts;
}

// Sizes of the parts when each holds `size` elements, the last one what is left.
inline std::vector<std::int64_t> even_parts(std::int64_t total, std::int64_t size) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < total; at += size) sizes.push_back(std::min(size, total - at));
  return sizes;
}

// The core form of what cuts a dim into parts, whose sizes the results tell.
inline std::optional<Node> core_parts(const CoreCall& call) {
  const int rank = call.in(0).rank();
  const auto dim = static_cast<int>(call.integer("dim") < 0 ? call.integer("dim") + rank : call.integer("dim"));
  std::vector<std::int64_t> sizes;
  for (ValueId v : call.node.outputs) {
    if (v == no_value || dim < 0 || dim >= call.graph[v].type.rank()) return std::nullopt;
    sizes.push_back(call.graph[v].type.shape.size(dim));
  }
  return call.call(aten::op::split_with_sizes_copy, {call.operand(0)},
                   {{"split_sizes", sizes}, {"dim", std::int64_t{dim}}});
}

}  // namespace tosaic
