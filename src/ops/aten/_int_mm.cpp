// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"

namespace tosaic {
namespace {

// torchao hands uint8 on, which normalise takes back to int8 where it can; what is left runs on the CPU.
void check(Builder& b, Val x, Val y) {
  if ((x.dtype() != DType::i8 && x.dtype() != DType::u8) || y.dtype() != DType::i8)
    b.refuse("aten._int_mm.dtype", "a product of " + to_string(x.type()) + " and " + to_string(y.type()));
  if (x.rank() != 2 || y.rank() != 2 || x.dim(1) != y.dim(0))
    b.refuse("aten._int_mm.shape", "a product of shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), y = call.tensor("mat2");
  check(b, x, y);
  if (x.dtype() == DType::u8) return b.aten(aten::op::matmul, {b.cast(x, DType::i32), b.cast(y, DType::i32)});
  Val zero = b.integers(std::vector<std::int64_t>{0}, DType::i8, Shape{1});
  Val sums = b.tosa(tosa::op::matmul,
                    {b.reshape(x, {1, x.dim(0), x.dim(1)}), b.reshape(y, {1, y.dim(0), y.dim(1)}), zero, zero});
  return b.reshape(sums, {x.dim(0), y.dim(1)});
}

// Without integers: sums of up to 1024 products of at most 2^14 are exact in f32's 24 bits.
Vals in_floats(Builder& b, const Call& call) {
  Val x = call.tensor("self"), y = call.tensor("mat2");
  check(b, x, y);
  if (x.dtype() == DType::u8 || x.dim(1) > 1024)
    b.refuse("aten._int_mm.length", fmt::format("sums of {} products in floats: 1024 are exact", x.dim(1)));
  Val sums = b.matmul(b.reshape(b.cast(x, DType::f32), {1, x.dim(0), x.dim(1)}),
                      b.reshape(b.cast(y, DType::f32), {1, y.dim(0), y.dim(1)}));
  return b.cast(b.reshape(sums, {x.dim(0), y.dim(1)}), DType::i32);
}

}  // namespace

AtenOp aten__int_mm() {
  return {.schemas = {"_int_mm(Tensor self, Tensor mat2) -> Tensor"},
          .summary = "the product of two matrices of int8 in int32",
          .rule = Rule::float_only,
          .lower = {lower, in_floats},
          .domain = {"i8(-128,127,17,16), i8(-128,127,16,8)", "i8(-128,127,17,32), const(i8(-128,127,32,24))"}};
}
}  // namespace tosaic
