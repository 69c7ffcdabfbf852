// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  auto sources = call.ints("source"), targets = call.ints("destination");
  if (sources.size() != targets.size())
    b.refuse("aten.movedim.dims",
             std::to_string(sources.size()) + " sources for " + std::to_string(targets.size()) + " destinations");
  const auto rank = static_cast<std::size_t>(x.rank());
  std::vector<int> permutation(rank, -1);
  std::vector<bool> moved(rank, false);
  auto at = [&](std::int64_t d) {
    const std::int64_t axis = d < 0 ? d + x.rank() : d;
    if (axis < 0 || axis >= x.rank())
      b.refuse("aten.movedim.dims",
               "dim " + std::to_string(d) + " is outside a tensor of rank " + std::to_string(x.rank()));
    return static_cast<std::size_t>(axis);
  };
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (permutation[at(targets[i])] != -1 || moved[at(sources[i])])
      b.refuse("aten.movedim.dims", "a dim is moved twice");
    permutation[at(targets[i])] = static_cast<int>(at(sources[i]));
    moved[at(sources[i])] = true;
  }
  std::size_t next = 0;  // the dims that stay keep their order
  for (int& p : permutation) {
    if (p != -1) continue;
    while (moved[next]) ++next;
    p = static_cast<int>(next++);
  }
  return b.transpose(x, permutation);
}
}  // namespace

AtenOp aten_movedim() {
  return {.schemas = {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
                      "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
                      "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
                      "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"},
          .summary = "moves dims to other positions, the rest keep their order",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"int: x(2,3,4), 0, -1", "intlist: x(2,3,4,5), [0,1], [3,0]", "intlist: x(2,3,4), [-1], [0]",
                     "moveaxis.int: x(2,3,4), 2, 0", "moveaxis.intlist: x(2,3,4), [0,1], [1,2]"}};
}
}  // namespace tosaic
