// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return creation::filled(call, 0, creation::dtype_of_tensor(x), x.shape());
}

std::optional<Node> core(const CoreCall& call) { return creation::core_filled(call, std::int64_t{0}); }
}  // namespace

AtenOp aten_zeros_like() {
  return {.schemas = {"zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                      "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"},
          .summary = "a tensor of zeros, shaped like self",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(2,3)", "i(0,5,4)", "x(2,3), dtype=bool"},
          .core = core};
}
}  // namespace tosaic
