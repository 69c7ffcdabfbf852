// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  std::vector<promotion::Operand> parts;
  for (const auto& t : call.tensors("tensors"))
    if (t && !t->shape().is_empty()) parts.push_back({*t});  // an empty tensor adds nothing
  if (parts.empty()) b.refuse("aten.cat.empty", "there is nothing to concatenate");
  const int rank = parts[0].tensor->rank();
  if (rank == 0) b.refuse("aten.cat.rank", "scalars cannot be concatenated");
  return b.concat(promotion::promote(b, parts, promotion::Compute::as_is).values, call.axis("dim", rank));
}

std::optional<Node> core(const CoreCall& call) {
  return call.schema.name == "cat" ? std::nullopt : std::optional(call.renamed("cat"));
}
}  // namespace

AtenOp aten_cat() {
  return {.schemas = {"cat(Tensor[] tensors, int dim=0) -> Tensor", "concat(Tensor[] tensors, int dim=0) -> Tensor",
                      "concatenate(Tensor[] tensors, int dim=0) -> Tensor"},
          .summary = "lays tensors one after the other along a dim",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"[x(2,3), x(1,3)], 0", "[x(2,3,4), x(2,1,4), x(2,2,4)], -2", "[x(2,3)], 1", "[x(2,2), b(2,3)], 1",
                     "[x(2,2), i(-5,5,2,1)], 1", "concat.default: [x(2,3), x(2,3)], 1",
                     "concatenate.default: [x(2,3), x(1,3)], 0"},
          .core = core};
}
}  // namespace tosaic
