// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.overload() == "other") return b.aten(aten::op::type_as, {x, call.tensor("other")});
  auto dtype = call.dtype("dtype");
  if (!dtype) return x;
  return b.aten(aten::op::_to_copy, {x}, {{"dtype", *dtype}});
}

std::optional<Node> core(const CoreCall& call) {
  return call.call(aten::op::_to_copy, {call.operand(0)}, {{"dtype", call.out().dtype}});
}
}  // namespace

AtenOp aten_to() {
  return {
      .schemas = {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
                  "MemoryFormat? memory_format=None) -> Tensor(a)",
                  "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
                  "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
                  "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                  "device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
                  "memory_format=None) -> Tensor(a)",
                  "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
                  "MemoryFormat? memory_format=None) -> Tensor(a)"},
      .summary = "the same values in another dtype (devices and layouts do not matter)",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain =
          {"x(2,3), f32",
           "u(-5,5,24), i32 # integer=quantise.cast-to-integer: quantised values do not become integers inside a "
           "delegate",
           "i(-5,5,12), f32", "b(6), f32", "i(-2,3,12), bool",
           "f(28), bool # integer=quantise.cast-to-integer: quantised values do not become integers inside a delegate",
           "x(2,3), i64 # integer=quantise.cast-to-integer: quantised values do not become integers inside a delegate",
           "x(2,3), f16 # rtol=5e-4 integer=lower.result-type: run in double, a cast does not round; quantised values "
           "do not become half precision inside a delegate",
           "l(-5,5,6), i32", "i(-300,300,12), i8", "device: x(2,3), 'cpu', f32", "dtype_layout: i(-5,5,6), dtype=f32",
           "dtype_layout: x(2,3)", "other: i(-5,5,6), x(2)"},
      .core = core};
}
}  // namespace tosaic
