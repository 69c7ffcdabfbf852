// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
// A quantised tensor stands for a float one already: between floats its quantised values stay as they are.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  auto dtype = call.dtype("dtype");
  if (!dtype) return x;
  const DType to = *dtype;
  // TOSA converts between f16 and bf16 only through f32.
  const bool halves = x.dtype() != to && storage_size(x.dtype()) == 2 && is_float(x.dtype()) && is_float(to);
  if (!x.type().quantised()) return b.cast(halves ? b.cast(x, DType::f32) : x, to);
  if (!is_float(to)) b.refuse("quantise.cast-to-integer", "a quantised tensor is cast to an integer type");
  return x;
}
}  // namespace

AtenOp aten__to_copy() {
  return {.schemas = {"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                      "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor"},
          .summary = "a copy in another dtype (devices, layouts and memory formats do not matter)",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)",
                     "u(-5,5,24), dtype=i32 # integer=quantise.cast-to-integer: quantised values do not become "
                     "integers inside a delegate",
                     "i(-5,5,12), dtype=f32", "b(6), dtype=i32",
                     "x(2,3), dtype=bf16 # rtol=4e-3 integer=lower.result-type: run in double, a cast does not round; "
                     "quantised values do not become half precision inside a delegate",
                     "i(-5,5,12), dtype=i64", "u8(0,256,24), dtype=f32", "u8(0,256,24), dtype=i32",
                     "u8(0,3,24), dtype=bool", "i(-300,300,24), dtype=u8"}};
}
}  // namespace tosaic
