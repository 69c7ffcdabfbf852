// SPDX-License-Identifier: Apache-2.0
// Python's operators on tensors of integers and booleans, as the functions that they call.
#pragma once
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {

inline Vals python_bitwise(Builder& b, const Call& call, Operator of_tensors, Operator of_a_scalar) {
  Val self = call.tensor("self");
  if (call.overload() == "Tensor") return b.aten(of_tensors, {self, call.tensor("other")});
  // True together with booleans leaves them booleans, 1 does not; the program's result tells which of the two it was.
  const bool boolean =
      self.dtype() == DType::boolean && !call.declared().empty() && call.declared()[0].dtype == DType::boolean;
  if (boolean) return b.aten(of_tensors, {self, b.scalar(call.number("other"), DType::boolean)});
  return b.aten(of_a_scalar, {self}, {{"other", call.integer("other")}});
}

// What is shifted, and by how much. Only counts `inside` [0, last] leave anything of a number but its sign.
struct ShiftOperands {
  promotion::Promoted promoted;
  double last;
  Val count, inside;
};
inline ShiftOperands shift_operands(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  if (is_float(p.result)) b.refuse("aten.bitwise-float", "shifts take integers");
  const double last = static_cast<double>(8 * storage_size(p.result) - 1);
  Val count = p.values[1];
  Val inside =
      functions::both(functions::at_least(count, b.like(count, 0.0)), functions::at_least(b.like(count, last), count));
  return {std::move(p), last, count, inside};
}

}  // namespace tosaic
