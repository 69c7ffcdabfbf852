// SPDX-License-Identifier: Apache-2.0
// PyTorch's type promotion, for the operators that take several operands of different dtypes. i64 and f64 count as
// i32 and f32: lowerings never see the wide ones.
#pragma once
#include <initializer_list>
#include <vector>

#include "ops/op.h"

namespace tosaic::promotion {

// One operand: a tensor, or a Python number, which yields to any tensor of its kind.
struct Operand {
  std::optional<Val> tensor;
  double number = 0;
  bool is_float = false;

  // Argument `name` of the call. A tensor argument may have been given as a number: x * 2.5 is mul.Tensor(x, 2.5).
  static Operand of(const Call& call, std::string_view name);
};

// i64 as i32, f64 as f32.
DType narrowed(DType type);
// torch.promote_types, and torch.result_type.
DType promoted(DType a, DType b);
DType result_type(const std::vector<Operand>& operands);

// `arithmetic`: TOSA adds, multiplies and compares only floats and i32, so bool, i8 and i16 go through i32.
// `as_is`: the result type itself (select, concat). Quantised operands are left alone, numbers take their scale.
enum class Compute { arithmetic, as_is };
struct Promoted {
  std::vector<Val> values;
  DType result;               // of the operation, when that is not bool by itself
  Val finished(Val y) const;  // y as `result`
};
Promoted promote(Builder& b, const std::vector<Operand>& operands, Compute compute = Compute::arithmetic);
Promoted promote(Builder& b, const Call& call, std::initializer_list<std::string_view> names,
                 Compute compute = Compute::arithmetic);

// Integers and booleans as f32, what PyTorch's float functions do first. Quantised tensors are real numbers already.
Val as_float(Val x);
bool is_real(Val x);  // float, or quantised
// A Scalar argument as it was given, int or float, for passing on.
Attr scalar_attribute(const Call& call, std::string_view name);

}  // namespace tosaic::promotion
