// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return creation::filled(call, call.number("fill_value"), creation::dtype_of_tensor(call.tensor("self")),
                          Shape(call.ints("size")));
}

std::optional<Node> core(const CoreCall& call) { return creation::core_filled(call, call.attr("fill_value")); }
}  // namespace

AtenOp aten_new_full() {
  return {.schemas = {"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a tensor of one value, with self's dtype",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(2,3), [4], 1.5", "i(0,5,4), [2,2], 3"},
          .core = core};
}
}  // namespace tosaic
