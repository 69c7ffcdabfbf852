// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const Shape shape = x.shape();
  auto shifts = call.ints("shifts"), dims = call.ints("dims");
  if (dims.empty()) {
    x = b.reshape(x, {shape.elements()});
    dims = {0};
  }
  if (dims.size() != shifts.size())
    b.refuse("aten.roll.shifts",
             std::to_string(shifts.size()) + " shifts for " + std::to_string(dims.size()) + " dims");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t d = dims[i] < 0 ? dims[i] + x.rank() : dims[i];
    if (d < 0 || d >= x.rank())
      b.refuse("aten.roll.dims",
               "dim " + std::to_string(dims[i]) + " is outside a tensor of rank " + std::to_string(x.rank()));
    const int axis = static_cast<int>(d);
    const std::int64_t size = x.dim(axis), shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    x = b.concat({b.slice_axis(x, axis, size - shift, shift), b.slice_axis(x, axis, 0, size - shift)}, axis);
  }
  return b.reshape(x, shape);
}
}  // namespace

AtenOp aten_roll() {
  return {.schemas = {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"},
          .summary = "moves the elements along dims, those pushed out at the end come back at the start",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(4,5), [1], [0]", "x(4,5), [-2,3], [0,1]", "x(2,3), [2]", "x(2,3,4), [5], [-1]"}};
}
}  // namespace tosaic
