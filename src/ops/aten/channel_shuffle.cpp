// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const std::int64_t groups = call.integer("groups");
  if (x.rank() < 3 || groups < 1 || x.dim(1) % groups)
    b.refuse("aten.channel_shuffle.groups", std::to_string(groups) + " groups for shape " + to_string(x.shape()));
  const std::int64_t rest = x.shape().elements() / (x.dim(0) * x.dim(1));
  Val y = b.transpose(b.reshape(x, {x.dim(0), groups, x.dim(1) / groups, rest}), {0, 2, 1, 3});
  return b.reshape(y, x.shape());
}
}  // namespace

AtenOp aten_channel_shuffle() {
  return {.schemas = {"channel_shuffle(Tensor self, SymInt groups) -> Tensor",
                      "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor"},
          .summary = "deals the channels of each group out in turn",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,6,2,2), 2", "x(2,6,3), 3", "native_channel_shuffle.default: x(1,4,2,2), 2"}};
}
}  // namespace tosaic
