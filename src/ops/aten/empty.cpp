// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Whatever was in memory, then; here zeros.
Vals lower(Builder&, const Call& call) {
  if (!call.schema().argument("self")) return creation::filled(call, 0.0, DType::f32, Shape(call.ints("size")));
  Val x = call.tensor("self");
  return creation::filled(call, 0.0, creation::dtype_of_tensor(x),
                          call.schema().argument("size") ? Shape(call.ints("size")) : x.shape());
}
}  // namespace

AtenOp aten_empty() {
  return {.schemas = {"empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
                      "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                      "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
                      "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
                      "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
                      "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                      "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a tensor whose content does not matter yet (zeros)",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"[2,3] # values=zeros: PyTorch leaves what was in memory",
                     "[2], dtype=i64 # values=zeros: PyTorch leaves what was in memory",
                     "empty_like.default: x(2,3) # values=zeros: PyTorch leaves what was in memory",
                     "empty_like.default: x(2), dtype=bool # values=zeros: PyTorch leaves what was in memory",
                     "new_empty.default: i(0,5,4), [2,2] # values=zeros: PyTorch leaves what was in memory",
                     "empty_strided.default: [2,3], [1,2] # values=zeros: PyTorch leaves what was in memory",
                     "new_empty_strided.default: x(2), [2,3], [3,1] # values=zeros: PyTorch leaves what was in memory",
                     "empty_permuted.default: [2,3], [1,0] # values=zeros: PyTorch leaves what was in memory"},
          .out_overloads = {{"empty.memory_format", "out"}}};
}
}  // namespace tosaic
