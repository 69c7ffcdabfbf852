// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Each element goes to where its index says in the result's last dims as one, and zeros are around them. The windows of
// a pool may have had their maximum in common: one index then names it twice.
Vals lower(Builder& b, const Call& call) {
  const Val x = call.tensor("self"), indices = call.tensor("indices");
  const std::vector<std::int64_t> spatial = call.ints("output_size");
  const auto dims = static_cast<int>(spatial.size());
  if (dims != (call.schema().name == "max_unpool2d" ? 2 : 3) || x.rank() - dims < 1 || x.rank() - dims > 2 ||
      indices.shape() != x.shape())
    b.refuse("aten.max_unpool.shape",
             "indices of shape " + to_string(indices.shape()) + " for an input of shape " + to_string(x.shape()));
  std::vector<std::int64_t> outer;
  for (int d = 0; d < x.rank() - dims; ++d) outer.push_back(x.dim(d));
  const auto with = [&](std::int64_t inner) {
    auto shape = outer;
    shape.push_back(inner);
    return Shape(shape);
  };
  std::int64_t all = 1, given = 1;
  for (std::int64_t size : spatial) all *= size;
  for (int d = x.rank() - dims; d < x.rank(); ++d) given *= x.dim(d);
  const Val zeros = b.broadcast_to(b.like(x, 0.0), with(all));
  const int last = static_cast<int>(outer.size());
  const Val y =
      scattered_lines(b, zeros, last, b.reshape(indices, with(given)), b.reshape(x, with(given)), replaced_by(call));
  outer.insert(outer.end(), spatial.begin(), spatial.end());
  return b.reshape(y, Shape(outer));
}
}  // namespace

AtenOp aten_max_unpool2d() {
  return {.schemas = {"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
                      "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) "
                      "-> Tensor"},
          .summary = "the largest of each window put back where it stood, among zeros",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,2,2), l(0,16,1,2,2,2), [4,4]", "x(2,2,3), l(0,24,2,2,3), [4,6]",
                     "max_unpool3d.default: x(1,1,2,2,2), l(0,64,1,1,2,2,2), [4,4,4], [2,2,2], [0,0,0]"}};
}
}  // namespace tosaic
