// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
Status eval(const Run& run) {
  return error("run.constant-node",
               fmt::format("{} is a node of the graph; a constant is a value with data", run.view.node().op));
}
}  // namespace

// As CONST: a value of dtype `shape` with data, never a node.
Op tosa_const_shape() {
  return {
      .name = "const_shape",
      .schema_number = 75,
      .spirv_number = 0xffff,
      .summary = "a list of sizes known at compile time",
      .inputs = {},
      .attrs = {},
      .outputs = {{.name = "output", .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true}},
      .types = {{{Feature::pro_int, Feature::pro_fp}, {}}},
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
