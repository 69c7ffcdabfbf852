// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val q = call.tensor("q"), k = call.tensor("k"), v = call.tensor("v");
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    b.refuse("aten.sdpa.rank", "queries of shape " + to_string(q.shape()) + " are no matrices");
  const double scale = call.has("scale") ? call.number("scale") : 1.0 / std::sqrt(static_cast<double>(q.dim(-1)));
  Val scores = calls::mul(calls::matmul(q, calls::transpose(k, -2, -1)), scale);
  if (auto mask = call.optional_tensor("attn_mask")) scores = calls::add(scores, *mask);
  return calls::matmul(calls::softmax(scores, -1), v);
}
}  // namespace

AtenOp aten_sdpa() {
  return {.schemas = {"et_vk::sdpa(Tensor q, Tensor k, Tensor v, Tensor? attn_mask=None, float? scale=None) -> Tensor"},
          .summary = "softmax(q k^T * scale + mask) v (ExecuTorch's Vulkan flow)",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(1,2,4,8), x(1,2,5,8), x(1,2,5,8)", "x(1,2,4,8), x(1,2,5,8), x(1,2,5,6), x(4,5), 0.5"}};
}
}  // namespace tosaic
