// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/definitions/variable.h"

namespace tosaic::tosa {
namespace {
// The declaration may stand in another graph: the node's own word counts.
std::vector<TensorType> infer(const View& view) {
  if (view.node().outputs.empty()) return {};
  return {view.out()};
}

Status eval(const Run& run) {
  TOSAIC_TRY(const Tensor* const variable, variable_of(run, run.out[0].type));
  if (variable->data.null())
    return unpredictable(run, fmt::format("variable '{}' is read before it is written", run.view.text("name")));
  std::memcpy(run.out[0].data, variable->data.data(), variable->data.size());
  return {};
}
}  // namespace

Op tosa_variable_read() {
  return {
      .name = "variable_read",
      .schema_number = 74,
      .spirv_number = 0xffff,
      .summary = "the content of a variable",
      .inputs = {},
      .attrs = {{"name", AttrKind::string}},
      .outputs = {{"output1", "out"}},
      .types = variable_types("out"),
      .infer = infer,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
