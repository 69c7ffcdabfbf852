// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/op.h"

namespace tosaic {
namespace {
// PyTorch joins different dtypes at the one that holds them all.
int breadth(DType t) {
  switch (t) {
    case DType::boolean: return 0;
    case DType::u8: case DType::i8: return 1;
    case DType::i16: return 2;
    case DType::i32: return 3;
    case DType::i64: return 4;
    case DType::f16: case DType::bf16: return 5;
    case DType::f32: return 6;
    default: return 7;
  }
}
DType joined(DType a, DType b) {
  if (a == b) return a;
  if (breadth(a) == breadth(b)) return is_float(a) ? DType::f32 : DType::i16;
  return breadth(a) > breadth(b) ? a : b;
}
Vals lower(Builder& b, const Call& call) {
  std::vector<Val> parts;
  for (const auto& t : call.tensors("tensors"))
    if (t && !(t->rank() == 1 && t->dim(0) == 0)) parts.push_back(*t);  // PyTorch ignores empty vectors here
  if (parts.empty()) b.refuse("aten.cat.empty", "there is nothing to concatenate");
  DType dtype = parts[0].dtype();
  for (Val p : parts) dtype = joined(dtype, p.dtype());
  for (Val& p : parts) p = b.cast(p, dtype);
  return b.concat(parts, call.axis("dim", parts[0].rank()));
}
}  // namespace

AtenOp aten_cat() {
  return {.schemas = {"cat(Tensor[] tensors, int dim=0) -> Tensor",
              "concat(Tensor[] tensors, int dim=0) -> Tensor",
              "concatenate(Tensor[] tensors, int dim=0) -> Tensor"},
          .summary = "lays tensors one after the other along a dim",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"[x(2,3), x(1,3)], 0",
                     "[x(2,3,4), x(2,1,4), x(2,2,4)], -2",
                     "[x(2,3)], 1",
                     "[x(2,2), i(-5,5,2,1)], 1"}};
}
}  // namespace tosaic
