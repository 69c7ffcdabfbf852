// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return creation::filled(call, 1, creation::dtype_of_tensor(call.tensor("self")), Shape(call.ints("size")));
}

std::optional<Node> core(const CoreCall& call) { return creation::core_filled(call, std::int64_t{1}); }
}  // namespace

AtenOp aten_new_ones() {
  return {.schemas = {"new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a tensor of ones, with self's dtype",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(2,3), [4]", "i(0,5,4), [2,2]", "x(2), [3], dtype=i32"},
          .core = core};
}
}  // namespace tosaic
