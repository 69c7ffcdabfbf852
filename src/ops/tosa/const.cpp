// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
Status eval(const Run& run) {
  return error("run.constant-node",
               fmt::format("{} is a node of the graph; a constant is a value with data", run.view.node().op));
}
}  // namespace

// In the IR a constant is a value with data, never a node. The row serves the formats, which know it as an operator.
Op tosa_const() {
  using enum DType;
  return {
      .name = "const",
      .schema_number = 67,
      .spirv_number = 0xffff,
      .summary = "a tensor known at compile time",
      .inputs = {},
      .attrs = {},
      .outputs = {{.name = "output", .type = "out", .constant = true}},
      .types = either("out", {boolean, i8, i16, i32}) + rows({Feature::int4}, "out", {i4}) +
               rows({Feature::int16}, "out", {i48}) + fp8s("out") + floats("out") + int64s("out"),
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
