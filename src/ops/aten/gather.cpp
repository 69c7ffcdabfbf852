// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/aten_index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Each line along the dim is a batch of GATHER, with one channel.
Vals lower(Builder& b, const Call& call) {
  const bool along = call.schema().name == "take_along_dim";
  Val x = call.tensor("self"), index = call.tensor(along ? "indices" : "index");
  if (along && !call.has("dim")) x = b.reshape(x, {x.shape().elements()});
  if (x.rank() == 0) return x;
  const int axis = call.has("dim") ? call.axis("dim", x.rank()) : 0;
  if (along && index.rank() == x.rank()) {  // the other dims broadcast
    auto wide = x.shape().dims(), long_index = index.shape().dims();
    for (std::size_t i = 0; i < wide.size(); ++i)
      if (static_cast<int>(i) != axis) wide[i] = long_index[i] = std::max(wide[i], long_index[i]);
    x = b.broadcast_to(x, Shape(wide));
    index = b.broadcast_to(index, Shape(long_index));
  }
  if (along && index.rank() != x.rank()) index = b.reshape(index, {index.shape().elements()});
  if (index.rank() != x.rank()) b.refuse("aten.gather.rank", "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  auto window = index.shape().dims();
  window[static_cast<std::size_t>(axis)] = x.dim(axis);
  for (int i = 0; i < x.rank(); ++i)
    if (window[static_cast<std::size_t>(i)] > x.dim(i))
      b.refuse("aten.gather.shape", "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  x = b.slice(x, std::vector<std::int64_t>(window.size(), 0), window);
  std::vector<int> last, back;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) last.push_back(i);
  last.push_back(axis);
  for (int i = 0; i < x.rank(); ++i) back.push_back(i < axis ? i : i == axis ? x.rank() - 1 : i - 1);
  Val lines = b.transpose(x, last), wanted = b.transpose(index, last);
  const std::int64_t k = x.dim(axis), w = index.dim(axis), n = index.shape().elements() / w;
  Val y = gathered(b.reshape(lines, {n, k, 1}), b.reshape(wanted, {n, w}));
  return b.transpose(b.reshape(y, wanted.shape()), back);
}
}  // namespace

AtenOp aten_gather() {
  return {.schemas = {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
              "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"},
          .summary = "along one dim, the element that each index names",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,5), 1, l(0,5,3,2)",
                     "x(3,5), 0, l(0,3,2,4)",
                     "x(2,3,4), -2, l(0,3,2,6,4)",
                     "take_along_dim.default: x(3,5), l(0,5,3,2), 1",
                     "take_along_dim.default: x(3,5), l(0,5,1,2), 1",
                     "take_along_dim.default: x(3,5), l(0,15,4)"}};
}
}  // namespace tosaic
