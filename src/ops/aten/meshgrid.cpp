// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool xy = call.overload() == "indexing" && call.text("indexing") == "xy";
  std::vector<Val> lines;
  for (const auto& t : call.tensors("tensors")) lines.push_back(b.reshape(*t, {t->shape().elements()}));
  const int rank = static_cast<int>(lines.size());
  // In "xy" order the first two dims of the results are exchanged.
  auto dim_of = [&](int i) { return xy && rank >= 2 && i < 2 ? 1 - i : i; };
  std::vector<std::int64_t> shape(lines.size());
  for (int i = 0; i < rank; ++i) shape[static_cast<std::size_t>(dim_of(i))] = lines[static_cast<std::size_t>(i)].dim(0);
  Vals grids;
  for (int i = 0; i < rank; ++i) {
    std::vector<std::int64_t> dims(lines.size(), 1);
    dims[static_cast<std::size_t>(dim_of(i))] = lines[static_cast<std::size_t>(i)].dim(0);
    grids.push_back(b.broadcast_to(b.reshape(lines[static_cast<std::size_t>(i)], Shape(dims)), Shape(shape)));
  }
  return grids;
}
}  // namespace

AtenOp aten_meshgrid() {
  return {.schemas = {"meshgrid(Tensor[] tensors) -> Tensor[]",
                      "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"},
          .summary = "the coordinates of a grid, from the coordinates along each of its dims",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: [x(2), x(3)]", "indexing: [x(2), x(3)], indexing='xy'"}};
}
}  // namespace tosaic
