// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  std::vector<int> permutation;
  std::vector<bool> seen(static_cast<std::size_t>(x.rank()), false);
  for (auto d : call.ints("dims")) {
    const std::int64_t axis = d < 0 ? d + x.rank() : d;
    if (axis < 0 || axis >= x.rank() || seen[static_cast<std::size_t>(axis)])
      b.refuse("aten.permute.dims",
               "dim " + std::to_string(d) + " is repeated or outside a tensor of rank " + std::to_string(x.rank()));
    seen[static_cast<std::size_t>(axis)] = true;
    permutation.push_back(static_cast<int>(axis));
  }
  return b.transpose(x, permutation);
}
}  // namespace

AtenOp aten_permute() {
  return {
      .schemas = {"permute(Tensor(a) self, int[] dims) -> Tensor(a)",
                  "permute_copy(Tensor self, int[] dims) -> Tensor"},
      .summary = "reorders the dims: output dim i is input dim dims[i]",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(2,3,4), [2,0,1]", "x(2,3,4,5), [0,-1,1,2]", "x(3), [0]", "permute_copy.default: x(2,3), [1,0]"}};
}
}  // namespace tosaic
