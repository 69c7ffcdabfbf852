// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/variable.h"

namespace tosaic::tosa {
namespace {

// Declares the variable `name`; the operand, when there is one, is its content at first. A variable that was
// declared by an earlier run keeps its content.
std::vector<TensorType> infer(const View&) { return {}; }

Check check(const View& view) {
  const auto& shape = view.ints("var_shape");
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 1; }))
    return broken("variable.shape", "variable '{}' has a dimension below 1", view.text("name"));
  const DType type = view.dtype("type");
  if (type != DType::i8 && type != DType::f16 && type != DType::f32)
    return broken("variable.type", "variable '{}' is {}; a variable is i8, f16 or f32", view.text("name"),
                  name_of(type));
  if (view.inputs() > 1)
    return broken("variable.initial-value", "variable '{}' has {} initial values", view.text("name"), view.inputs());
  if (view.inputs() == 1 && (view.in(0).dtype != type || view.in(0).shape.sizes() != shape))
    return broken("variable.initial-value", "variable '{}' is {}, its initial value {}", view.text("name"),
                  to_string(TensorType{type, Shape(shape), {}}), to_string(view.in(0)));
  return std::nullopt;
}

Status eval(const Run& run) {
  if (!run.variables) return unpredictable(run, "this executor keeps no variables");
  // Content of no bytes: declared, not written yet. The dtype is the one that the run computes with.
  Tensor variable{{run.view.dtype("type"), Shape(run.view.ints("var_shape")), std::nullopt}, {}};
  if (!run.in.empty()) variable = {run.in[0].type, Bytes::copy(run.in[0].data, run.in[0].type.storage_bytes())};
  run.variables->try_emplace(run.view.text("name"), std::move(variable));
  return {};
}

}  // namespace

Op tosa_variable() {
  return {
      .name = "variable",
      .schema_number = 72,
      .spirv_number = 0xffff,
      .summary = "declares a tensor that outlives the run",
      .inputs = {{.name = "initial_value", .type = "in", .list = true}},
      .attrs = {{"name", AttrKind::string}, {"var_shape", AttrKind::i32_list}, {"type", AttrKind::dtype}},
      .outputs = {},
      .types = variable_types("in"),
      .infer = infer,
      .check = check,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
