// SPDX-License-Identifier: Apache-2.0
// Python's operators on tensors of integers and booleans, as the functions that they call.
#pragma once
#include <string>

#include "ops/op.h"

namespace tosaic {

inline Vals python_bitwise(Builder& b, const Call& call, const std::string& function) {
  Val self = call.tensor("self");
  if (call.overload() == "Tensor") return b.aten(function + ".Tensor", {self, call.tensor("other")});
  // True beside booleans leaves them booleans, 1 does not; the program's result tells which of the two it was.
  const bool boolean =
      self.dtype() == DType::boolean && !call.declared().empty() && call.declared()[0].dtype == DType::boolean;
  if (boolean) return b.aten(function + ".Tensor", {self, b.scalar(call.number("other"), DType::boolean)});
  return b.aten(function + ".Scalar", {self}, {{"other", call.integer("other")}});
}

}  // namespace tosaic
