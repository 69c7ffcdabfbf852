// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return creation::filled(call, call.number("fill_value"), creation::dtype_of_scalar(call, "fill_value"),
                          Shape(call.ints("size")));
}
}  // namespace

AtenOp aten_full() {
  return {.schemas = {"full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a tensor of one value",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"[2,3], 1.5", "[2], 3", "[], 2.5", "[2,3], 1.5, dtype=i32", "[4], 1, dtype=bool", "[4], True",
                     "[2,3], -inf"}};
}
}  // namespace tosaic
