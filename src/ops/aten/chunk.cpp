// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const std::int64_t chunks = call.integer("chunks");
  if (chunks < 1) b.refuse("aten.chunk.chunks", std::to_string(chunks) + " chunks");
  return split_at(x, axis, even_parts(x.dim(axis), (x.dim(axis) + chunks - 1) / chunks));
}
}  // namespace

AtenOp aten_chunk() {
  return {.schemas = {"chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"},
          .summary = "cuts a dim into at most a number of equal parts",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(6,2), 3", "x(2,7), 3, -1", "x(2,5), 4, 1"},
          .core = core_parts};
}
}  // namespace tosaic
