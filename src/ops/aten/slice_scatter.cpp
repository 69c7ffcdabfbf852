// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), source = call.tensor("src");
  const int axis = sliced_axis(b, call, x);
  const SliceRange range = slice_range(b, call, x.dim(axis));
  auto window = x.shape().sizes();
  window[static_cast<std::size_t>(axis)] = range.count;
  source = b.broadcast_to(source, Shape(window));
  const std::int64_t size = x.dim(axis);
  if (range.step == 1 || range.count == 1) {
    std::vector<Val> parts;
    if (range.start > 0) parts.push_back(b.slice_axis(x, axis, 0, range.start));
    parts.push_back(source);
    if (const std::int64_t end = range.start + range.count; end < size)
      parts.push_back(b.slice_axis(x, axis, end, size - end));
    return b.concat(parts, axis);
  }
  // Windows of `step` elements, of which the source's is the first. The last window may be cut short.
  const std::int64_t whole = (size - range.start) / range.step >= range.count ? range.count : range.count - 1;
  std::vector<Val> parts;
  if (range.start > 0) parts.push_back(b.slice_axis(x, axis, 0, range.start));
  if (whole > 0) {
    auto windows = x.shape().sizes();
    windows[static_cast<std::size_t>(axis)] = whole;
    windows.insert(windows.begin() + axis + 1, range.step);
    Val rest = b.reshape(b.slice_axis(x, axis, range.start, whole * range.step), Shape(windows));
    rest = b.slice_axis(rest, axis + 1, 1, range.step - 1);
    const Val first = b.unsqueeze(b.slice_axis(source, axis, 0, whole), axis + 1);
    window[static_cast<std::size_t>(axis)] = whole * range.step;
    parts.push_back(b.reshape(b.concat({first, rest}, axis + 1), Shape(window)));
  }
  if (whole < range.count) parts.push_back(b.slice_axis(source, axis, whole, 1));
  const std::int64_t end = range.start + whole * range.step + (whole < range.count ? 1 : 0);
  if (end < size) parts.push_back(b.slice_axis(x, axis, end, size - end));
  return b.concat(parts, axis);
}
}  // namespace

AtenOp aten_slice_scatter() {
  return {.schemas = {"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                      "step=1) -> Tensor"},
          .summary = "a copy of the first tensor in which a slice is replaced by the second",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(6,3), x(2,3), 0, 1, 3", "x(2,5), x(2,2), -1, -2", "x(2,7), x(2,3), 1, 1, 7, 2",
                     "x(8), x(2), 0, 2, 8, 4"}};
}
}  // namespace tosaic
