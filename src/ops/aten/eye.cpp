// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const std::int64_t rows = call.integer("n"), columns = call.schema().argument("m") ? call.integer("m") : rows;
  creation::check_size(call, Shape{rows, columns});
  std::vector<double> values(static_cast<std::size_t>(rows * columns), 0.0);
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i) values[static_cast<std::size_t>(i * columns + i)] = 1;
  return b.reshape(creation::vector(call, values, creation::dtype_of(call, DType::f32)), Shape{rows, columns});
}
}  // namespace

AtenOp aten_eye() {
  return {.schemas = {"eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
                      "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "ones on the diagonal, zeros elsewhere",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"3", "3, dtype=i64", "2, dtype=bool", "m: 2, 4"}};
}
}  // namespace tosaic
