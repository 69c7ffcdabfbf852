// SPDX-License-Identifier: Apache-2.0
// PyTorch's type promotion, for the operators that take several operands of different dtypes. In what a target gets
// integers have been narrowed to i32 before; what is lowered for our own executors may hold i64 and f64, and keeps
// them.
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
  std::optional<std::int64_t> integer = {};  // the number exactly, when it is an integer

  // Argument `name` of the call. A tensor argument may have been given as a number: x * 2.5 is mul.Tensor(x, 2.5).
  static Operand of(const Call& call, std::string_view name);
};

// torch.promote_types, and torch.result_type.
DType promoted(DType a, DType b);
DType result_type(const std::vector<Operand>& operands);

// `arithmetic`: TOSA adds, multiplies and compares only floats and i32, so bool and the narrow integers go through i32.
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
// The same by PyTorch's call, for what is composed of calls.
Val as_real(Val x);
// A Scalar argument as it was given, int or float, for passing on.
Attr scalar_attribute(const Call& call, std::string_view name);

}  // namespace tosaic::promotion
