// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool indices_only = call.schema().name == "argsort";
  if (x.rank() == 0) {
    Val zero = b.scalar(0, DType::i32);
    return indices_only ? Vals{zero} : Vals{x, zero};
  }
  Sorted s = sorted_along(b, x, call.axis("dim", x.rank()), call.flag("descending"));
  return indices_only ? Vals{s.indices} : Vals{s.values, s.indices};
}
}  // namespace

AtenOp aten_sort() {
  return {.schemas = {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
                      "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
                      "Tensor indices)",
                      "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
                      "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor"},
          .summary = "the elements of a dim in order, and their indices",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(3,7)", "default: x(5,2), 0, True", "default: n(8)", "default: n(8), 0, True",
                     "stable: i(0,4,2,8), stable=True, dim=1", "argsort.default: x(2,6), -1, True",
                     "argsort.stable: i(0,3,9), stable=True"},
          .out_overloads = {{"sort.default", "values"}, {"sort.stable", "values_stable"}}};
}
}  // namespace tosaic
