// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// Which of the `count` indices belong to which bag, less those of padding: a bool tensor [bags, count].
Val members(Builder& b, const Call& call, Val indices, Val offsets, std::int64_t rows) {
  const std::int64_t count = indices.dim(0), given = offsets.dim(0);
  const std::int64_t bags = call.flag("include_last_offset") ? given - 1 : given;
  Ints numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  Val iota = b.integers(numbers, DType::i32, {1, count});
  offsets = b.aten(aten::op::clamp, {offsets}, {{"min", std::int64_t{0}}, {"max", count}});
  offsets = b.aten(aten::op::_to_copy, {offsets}, {{"dtype", DType::i32}});
  Val starts = calls::view(calls::slice(offsets, 0, 0, bags), {bags, 1});
  std::vector<Val> ends;
  if (given > 1) ends.push_back(calls::slice(offsets, 0, 1, given - 1));
  if (bags == given) ends.push_back(b.integers(Ints{count}, DType::i32, {1}));
  Val end = calls::view(calls::cat(ends, 0), {bags, 1});
  Val inside = b.aten(aten::op::logical_and,
                      {b.aten(aten::op::le_Tensor, {starts, iota}), b.aten(aten::op::gt_Tensor, {end, iota})});
  if (!call.schema().argument("padding_idx") || !call.has("padding_idx")) return inside;
  std::int64_t padding = call.integer("padding_idx");
  if (padding < 0 && call.overload() != "padding_idx") return inside;  // -1: none
  if (padding < 0) padding += rows;
  Val counts = b.aten(aten::op::ne_Scalar, {indices}, {{"other", padding}});
  return b.aten(aten::op::logical_and, {inside, calls::view(counts, {1, count})});
}

// The rows of all bags side by side, [bags, count, features], of which each bag takes its own.
Vals lower(Builder& b, const Call& call) {
  Val table = call.tensor("weight"), indices = call.tensor("indices"), offsets = call.tensor("offsets");
  if (table.rank() != 2 || indices.rank() != 1 || offsets.rank() != 1)
    b.refuse("aten.embedding_bag.rank",
             "indices of shape " + to_string(indices.shape()) + " with offsets of shape " + to_string(offsets.shape()));
  const std::int64_t count = indices.dim(0), mode = call.integer("mode");
  if (call.flag("include_last_offset") && offsets.dim(0) < 2)
    b.refuse("aten.embedding_bag.offsets", "offsets that name no bag");
  Val rows = b.aten(aten::op::embedding, {table, indices});
  if (auto weights = call.optional_tensor("per_sample_weights"))
    rows = calls::mul(rows, calls::view(*weights, {count, 1}));
  Val mask = members(b, call, indices, offsets, table.dim(0));
  const std::int64_t bags = mask.dim(0);
  Val own = calls::view(mask, {bags, count, 1}), all = calls::view(rows, {1, count, table.dim(1)});
  Val zero = b.scalar(0.0, table.dtype());
  if (mode == 2) {
    // Below the least row, so that an empty bag shows, too; it counts as 0.
    Val least = calls::amin(all, {1}, true);
    Val y = calls::amax(calls::where(own, all, least), {1}, false);
    Val some = b.aten(aten::op::any_dim, {mask}, {{"dim", std::int64_t{1}}, {"keepdim", true}});
    return calls::where(some, y, zero);
  }
  Val y = calls::sum(calls::where(own, all, zero), {1}, false);
  if (mode == 0) return y;
  if (mode != 1) b.refuse("aten.embedding_bag.mode", "mode " + std::to_string(mode) + " is none of sum, mean and max");
  Val size = calls::sum(b.aten(aten::op::_to_copy, {mask}, {{"dtype", table.dtype()}}), {1}, true);
  return b.aten(aten::op::div_Tensor, {y, calls::at_least(size, 1.0)});
}
}  // namespace

AtenOp aten_embedding_bag() {
  return {
      .schemas = {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
                  "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> "
                  "(Tensor, Tensor, Tensor, Tensor)",
                  "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
                  "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
                  "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
                  "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
                  "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, "
                  "int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
                  "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
                  "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
                  "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)"},
      .summary = "the sum, mean or largest of several rows of a table, bag by bag",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"default: const(x(7,3)), l(0,7,6), const(l(0,1,1)) # results=1: the others serve the gradient",
                 "default: const(x(7,3)), l(0,7,6), l(0,1,2), False, 1 # results=1: the others serve the gradient",
                 "default: const(x(7,3)), l(0,7,6), l(0,1,3), False, 2 # results=1: the others serve the gradient",
                 "default: const(x(7,3)), l(0,7,5), l(0,1,1), False, 0, False, x(5) # results=1: the others serve the "
                 "gradient",
                 "default: const(x(7,3)), l(0,7,6), l(0,1,1), False, 1, False, None, False # results=1: the others "
                 "serve the gradient",
                 "padding_idx: const(x(7,3)), l(0,3,6), l(0,1,1), False, 1, False, None, False, 1 # results=1: the "
                 "others serve the gradient",
                 "padding_idx: const(x(7,3)), l(5,7,6), l(0,1,1), False, 2, False, None, False, -2 # results=1: the "
                 "others serve the gradient",
                 "_embedding_bag.default: const(x(7,3)), l(0,7,6), l(0,1,2) # results=1: the others serve the gradient",
                 "_embedding_bag_forward_only.default: const(x(7,3)), l(0,7,6), l(0,1,2), False, 1 # results=1: the "
                 "others serve the gradient"}};
}
}  // namespace tosaic
