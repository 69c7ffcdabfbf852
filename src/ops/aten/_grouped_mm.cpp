// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// Rows in groups, each with a matrix of its own: all rows times all matrices, of which each row takes its group's.
// Rows behind the last group are 0. (The mixtures of experts of transformers.)
Vals lower(Builder& b, const Call& call) {
  const bool native = call.schema().ns == "aten";
  Val x = call.tensor(native ? "self" : "input"), weights = call.tensor(native ? "mat2" : "weight");
  if (x.rank() != 2 || weights.rank() != 3 || x.dim(1) != weights.dim(1) || !call.has("offs") ||
      call.tensor("offs").shape() != Shape{weights.dim(0)})
    b.refuse("aten.grouped_mm.shape", "groups of shapes " + to_string(x.shape()) + " and " +
                                          to_string(weights.shape()) + ": only rows in groups are taken");
  if (native && (call.has("bias") || call.has("out_dtype")))
    b.refuse("aten.grouped_mm.arguments", "a bias or another dtype of the result");
  const std::int64_t rows = x.dim(0), groups = weights.dim(0);
  Ints numbers;
  for (std::int64_t i = 0; i < rows; ++i) numbers.push_back(i);
  Val iota = b.integers(numbers, DType::i32, {1, rows});
  Val ends = b.aten(aten::op::clamp, {call.tensor("offs")}, {{"min", std::int64_t{0}}, {"max", rows}});
  ends = b.aten(aten::op::_to_copy, {ends}, {{"dtype", DType::i32}});
  Val starts = b.integers(Ints{0}, DType::i32, {1});
  if (groups > 1) starts = calls::cat({starts, calls::slice(ends, 0, 0, groups - 1)}, 0);
  Val own = b.aten(aten::op::logical_and, {b.aten(aten::op::le_Tensor, {calls::view(starts, {groups, 1}), iota}),
                                           b.aten(aten::op::gt_Tensor, {calls::view(ends, {groups, 1}), iota})});
  Val all = b.aten(aten::op::expand, {calls::view(x, {1, rows, x.dim(1)})}, {{"size", Ints{groups, rows, x.dim(1)}}});
  Val products = b.aten(aten::op::bmm, {all, weights});
  Val zero = b.scalar(0.0, x.dtype());
  return calls::sum(calls::where(calls::view(own, {groups, rows, 1}), products, zero), {0}, false);
}
}  // namespace

AtenOp aten__grouped_mm() {
  return {.schemas = {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
                      "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
                      "out_dtype=None) -> Tensor"},
          .summary = "rows in groups, times one matrix per group",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(6,8), x(3,8,16), const(i(6,7,3))", "x(6,8), x(2,8,4), i(2,4,2)",
                     "_grouped_mm.default: x(6,8), x(2,8,16), i(6,7,2)"}};
}
}  // namespace tosaic
