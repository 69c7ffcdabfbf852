// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return creation::filled(call, 0, DType::f32, Shape(call.ints("size"))); }
}  // namespace

AtenOp aten_zeros() {
  return {.schemas = {"zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                      "bool? pin_memory=None) -> Tensor"},
          .summary = "a tensor of zeros",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"[2,3]", "[2,3], dtype=i64", "[], dtype=bool"}};
}
}  // namespace tosaic
