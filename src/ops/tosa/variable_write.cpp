// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/variable.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View&) { return {}; }

Status eval(const Run& run) {
  TOSAIC_TRY(Tensor* const variable, variable_of(run, run.in[0].type));
  variable->data = Bytes::copy(run.in[0].data, run.in[0].type.storage_bytes());
  return {};
}
}  // namespace

Op tosa_variable_write() {
  return {
      .name = "variable_write",
      .schema_number = 73,
      .spirv_number = 0xffff,
      .summary = "changes the content of a variable",
      .inputs = {{"input1", "in"}},
      .attrs = {{"name", AttrKind::string}},
      .outputs = {},
      .types = variable_types("in"),
      .infer = infer,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
