// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) b.refuse("aten.diff.rank", "diff of a scalar");
  const int axis = call.axis("dim", x.rank());
  const std::int64_t n = call.integer("n");
  if (n < 0) b.refuse("aten.diff.n", "diff taken " + std::to_string(n) + " times");
  std::vector<Val> parts;
  if (auto before = call.optional_tensor("prepend")) parts.push_back(*before);
  parts.push_back(x);
  if (auto after = call.optional_tensor("append")) parts.push_back(*after);
  x = calls::cat(parts, axis);
  if (n >= x.dim(axis))
    b.refuse("aten.diff.empty",
             "of " + std::to_string(x.dim(axis)) + " elements nothing is left after " + std::to_string(n) + " diffs");
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t size = x.dim(axis) - 1;
    Val next = calls::slice(x, axis, 1, size), last = calls::slice(x, axis, 0, size);
    x = x.dtype() == DType::boolean ? b.aten(aten::op::logical_xor, {next, last}) : calls::sub(next, last);
  }
  return x;
}
}  // namespace

AtenOp aten_diff() {
  return {.schemas = {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor"},
          .summary = "the difference of neighbours along a dim, n times",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,5)", "x(4,3), 2, 0", "i(-9,9,2,6), 1, -1", "b(3,5)",
                     "x(2,5), 0 # integer=target.unsupported: floats that are handed back", "i8(-100,100,7)",
                     "x(2,4), 1, 1, x(2,1), x(2,2)", "l(0,9,1,6), 1, -1, l(0,9,1,1)"}};
}
}  // namespace tosaic
