// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
// One transpose and at most two reversals, by the number of quarter turns.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const auto dims = call.ints("dims");
  const std::int64_t turns = ((call.integer("k") % 4) + 4) % 4;
  if (dims.size() != 2) b.refuse("aten.rot90.dims", std::to_string(dims.size()) + " dims instead of 2");
  auto at = [&](std::size_t i) { return static_cast<int>(dims[i] < 0 ? dims[i] + x.rank() : dims[i]); };
  const int from = at(0), to = at(1);
  if (from < 0 || to < 0 || from >= x.rank() || to >= x.rank() || from == to)
    b.refuse("aten.rot90.dims", "dims outside shape " + to_string(x.shape()));
  auto reversed = [&](Val v, int axis) {
    const TensorType type = v.type();
    v = b.tosa(tosa::op::reverse, {v}, {{"axis", std::int64_t{axis}}});
    b.graph()[v.id()].type = type;
    return v;
  };
  std::vector<int> swap;
  for (int i = 0; i < x.rank(); ++i) swap.push_back(i == from ? to : i == to ? from : i);
  if (turns == 1) return b.transpose(reversed(x, to), swap);
  if (turns == 2) return reversed(reversed(x, from), to);
  if (turns == 3) return reversed(b.transpose(x, swap), to);
  return x;
}
}  // namespace

AtenOp aten_rot90() {
  return {.schemas = {"rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor"},
          .summary = "turns a plane by quarter turns",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)", "x(2,3,4), 2, [1,2]", "x(2,3), 3", "x(2,3), -4"}};
}
}  // namespace tosaic
