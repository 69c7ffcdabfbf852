// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x[mask] = value, x[:, mask] = value: a choice element by element, as long as the value does not depend on how many
// places there are. `before`: the dims in front of the mask's.
Val put_by_mask(Builder& b, Val x, int before, Val mask, Val values) {
  const int behind = x.rank() - before - mask.rank();
  if (behind < 0)
    b.refuse("aten.index_put.mask", "a mask of shape " + to_string(mask.shape()) + " after " + std::to_string(before) +
                                        " dims for shape " + to_string(x.shape()));
  auto dims = mask.shape().sizes();
  dims.insert(dims.end(), static_cast<std::size_t>(behind), 1);
  // Values may be broadcast to [before, positions, after]: their dim of positions, if they have one, becomes the
  // mask's.
  if (const int places = values.rank() - 1 - behind; places >= 0) {
    if (values.dim(places) != 1)
      b.refuse("aten.index_put.mask",
               "values of shape " + to_string(values.shape()) +
                   " for the elements that a mask selects, whose count is known only at run time");
    auto wide = values.shape().sizes();
    wide.insert(wide.begin() + places, static_cast<std::size_t>(mask.rank() - 1), 1);
    while (static_cast<int>(wide.size()) > x.rank() && wide.front() == 1) wide.erase(wide.begin());
    values = b.reshape(values, Shape(wide));
  }
  return b.select(b.reshape(mask, Shape(dims)), values, x);
}
// One dim is indexed, others stand before it: slices of x as it lies, no transposes. (A cache of heads: keys[:, :, i] =
// k.) NPUs have rows of one batch only.
bool goes_along_a_dim(const Builder& b, const IndexPlan& plan) {
  return plan.indexed.size() == 1 && plan.indexed[0] > 0 && !(b.spec() && b.spec()->product);
}
Val put_at_dim(Builder& b, Val x, const IndexPlan& plan, Val values, Put how) {
  const int axis = plan.indexed[0];
  auto dims = x.shape().sizes();
  dims.erase(dims.begin() + axis);
  const auto common = plan.common.sizes();
  dims.insert(dims.begin() + axis, common.begin(), common.end());
  Val places = b.reshape(plan.position, {plan.common.elements()});
  return put_along(b, x, axis, places, b.broadcast_to(values, Shape(dims)), how);
}
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), values = call.tensor("values");
  const auto indices = call.tensors("indices");
  if (!x.type().quantised()) values = b.cast(values, x.dtype());
  const bool add = call.flag("accumulate");
  const Put how = add ? Put::add : replaced_by(call);
  const auto first = std::find_if(indices.begin(), indices.end(), [](const auto& index) { return index.has_value(); });
  if (first != indices.end() && first + 1 == indices.end() && (*first)->dtype() == DType::boolean && !add)
    return put_by_mask(b, x, static_cast<int>(first - indices.begin()), **first, values);
  const IndexPlan plan = index_plan(b, x, indices);
  if (plan.nothing()) return add ? b.add(x, values) : b.broadcast_to(values, x.shape());
  if (goes_along_a_dim(b, plan)) return put_at_dim(b, x, plan, values, how);
  // The values in the shape of x[indices], then as rows of the table that is scattered into.
  const Shape wide = plan.gathered_shape(x);
  std::vector<int> back(static_cast<std::size_t>(wide.rank()));
  const auto placed = plan.placed();
  std::vector<std::int64_t> result_dims;
  for (int p : placed) result_dims.push_back(wide.size(p));
  for (std::size_t i = 0; i < placed.size(); ++i) back[static_cast<std::size_t>(placed[i])] = static_cast<int>(i);
  Val rows = b.transpose(b.broadcast_to(values, Shape(result_dims)), back);
  const std::int64_t count = plan.common.elements();
  Val table = plan.table(x);
  Val source = b.reshape(rows, {1, count, table.dim(2)}), position = b.reshape(plan.position, {1, count});
  return plan.restored(put(table, position, source, how), x);
}
}  // namespace

AtenOp aten_index_put() {
  return {.schemas =
              {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
               "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
               "index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
               "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"},
          .summary = "a copy of x in which x[i, j, ...] = values",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(5,3), [l(2,3,1)], x(1,3)",
                     "x(5,3), [const(l(-2,-1,1))], x(3)",
                     "x(2,4,3), [None, l(1,2,1)], x(2,1,3)",
                     "x(4,5), [l(1,2,1), l(0,1,1)], x(1) # integer=target.unsupported: a number far smaller than the "
                     "rest keeps its digits as a float",
                     "x(2,3,4), [l(0,1,1), None, l(3,4,1)], x(1,3)",
                     "x(5,3), [l(2,3,1)], x() # integer=target.unsupported: a number far smaller than the rest keeps "
                     "its digits as a float",
                     "x(3,4), [b(3,4)], x()",
                     "x(3,4), [b(3)], x(4)",
                     "x(3,4), [l(0,3,6)], x(6,4), True",
                     "i(-9,9,3,4), [l(0,3,6)], i(-9,9,6,4), True",
                     "index_put.hacked_twin: x(5,3), [l(2,3,1)], x(1,3)",
                     "_unsafe_index_put.default: x(5,3), [l(4,5,1)], x(1,3)",
                     "x(2,3,4), [None, b(3)], x(2,1,4)",
                     "x(2,3,4), [None, b(3,4)], x(2,1)",
                     "x(2,3,4), [b(2,3)], x(1,4)",
                     "x(5,3), [l(0,3,6)], x(6,3)",
                     "x(5,3), [const(l(0,3,4))], x(4,3)",
                     "x(2,4,3), [None, l(0,4,7)], x(2,7,3)",
                     "x(3,4), [l(0,3,9), l(0,2,9)], x(9)",
                     "i(-9,9,5), [l(-2,2,6)], i(-9,9,6)"}};
}
}  // namespace tosaic
