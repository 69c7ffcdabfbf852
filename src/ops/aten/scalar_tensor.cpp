// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Unlike other creation operators: an integer without a dtype becomes the default float.
Vals lower(Builder&, const Call& call) { return creation::filled(call, call.number("s"), DType::f32, Shape{}); }
}  // namespace

AtenOp aten_scalar_tensor() {
  return {.schemas = {"scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                      "bool? pin_memory=None) -> Tensor"},
          .summary = "a scalar as a tensor of rank 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"2.5", "3", "3, dtype=i32", "1, dtype=bool"}};
}
}  // namespace tosaic
