// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const bool sizes_name = call.schema().argument("split_sizes") != nullptr;
  if (sizes_name) return split_at(x, axis, call.ints("split_sizes"));
  if (call.overload() == "sizes") return split_at(x, axis, call.ints("split_size"));
  const std::int64_t size = call.integer("split_size");
  if (size < 1) b.refuse("aten.split.sizes", "parts of " + std::to_string(size) + " elements");
  return split_at(x, axis, even_parts(x.dim(axis), size));
}

std::optional<Node> core(const CoreCall& call) {
  return call.node.op == aten::op::split_sizes ? core_parts(call) : std::nullopt;
}
}  // namespace

AtenOp aten_split() {
  return {.schemas = {"split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                      "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
                      "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
                      "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
                      "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]"},
          .summary = "cuts a dim into parts of given sizes",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"Tensor: x(5,3), 2", "Tensor: x(2,6), 3, -1", "sizes: x(5,3), [1,4]",
                     "split_with_sizes.default: x(2,6), [1,2,3], 1", "split_copy.Tensor: x(5,3), 2",
                     "split_with_sizes_copy.default: x(5,3), [3,2]"},
          .core = core};
}
}  // namespace tosaic
