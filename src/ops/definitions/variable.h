// SPDX-License-Identifier: Apache-2.0
// VARIABLE, VARIABLE_WRITE and VARIABLE_READ: tensors by name that outlive their graph. Private to src/ops.
#pragma once
#include "ops/definitions/row.h"

namespace tosaic::tosa {

inline TypeRows variable_types(std::string_view variable) {
  TypeRows types = integers(variable, {DType::i8}) + rows({Feature::pro_fp}, variable, {DType::f16, DType::f32});
  for (TypeRow& row : types) row.and_needs = Feature::variable;
  return types;
}

// The variable that the node names; declared, and of this type.
inline Result<Tensor*> variable_of(const Run& run, const TensorType& type) {
  const std::string& name = run.view.text("name");
  auto found = run.variables ? run.variables->find(name) : Variables::iterator{};
  if (!run.variables || found == run.variables->end())
    return unpredictable(run, fmt::format("variable '{}' is not declared", name)).error();
  TensorType& declared = found->second.type;
  if (found->second.data.null() && is_float(declared.dtype) && type.dtype == DType::f64)
    declared.dtype = DType::f64;  // precise mode
  if (declared.dtype != type.dtype || declared.shape.sizes() != type.shape.sizes())
    return unpredictable(run, fmt::format("variable '{}' is {}, not {}", name, to_string(declared), to_string(type)))
        .error();
  return &found->second;
}

}  // namespace tosaic::tosa
