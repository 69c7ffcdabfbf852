// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

Val select(Val x, std::int64_t index) {
  return x.builder().aten(aten::op::select_int, {x}, {{"dim", std::int64_t{-1}}, {"index", index}});
}

// Pairs of neighbours along the last dim as complex numbers, turned; cos and sin broadcast to [..., pairs].
Val turned_pairs(Val x, Val cos, Val sin) {
  auto dims = x.shape().sizes();
  auto pairs = dims;
  pairs.back() /= 2;
  auto one = pairs;
  one.push_back(1);
  pairs.push_back(2);
  Val split = calls::view(x, Shape(pairs));
  Val re = select(split, 0), im = select(split, 1);
  Val out_re = calls::sub(calls::mul(re, cos), calls::mul(im, sin));
  Val out_im = calls::add(calls::mul(re, sin), calls::mul(im, cos));
  return calls::view(
      calls::cat({calls::view(out_re, Shape(one)), calls::view(out_im, Shape(one))}, static_cast<int>(dims.size())),
      Shape(dims));
}

// The halves of the last dim as complex numbers, turned.
Val turned_halves(Val x, Val cos, Val sin) {
  const std::int64_t half = x.dim(-1) / 2;
  const int last = x.rank() - 1;
  Val turned = calls::cat(
      {calls::unary(aten::op::neg, calls::slice(x, last, half, half)), calls::slice(x, last, 0, half)}, last);
  return calls::add(calls::mul(x, cos), calls::mul(turned, sin));
}

void check(Builder& b, Val x) {
  if (x.rank() != 4 || x.dim(3) % 2 != 0)
    b.refuse("aten.apply_rotary_emb.shape", "an input of shape " + to_string(x.shape()));
}

Vals interleaved(Builder& b, const Call& call) {
  Val x = call.tensor("x"), turns = call.tensor("freqs_cis");
  if (x.rank() != 3 || x.dim(2) % 2 != 0 || turns.shape().elements() != x.dim(1) * x.dim(2))
    b.refuse("aten.apply_rotary_emb.shape",
             "an input of shape " + to_string(x.shape()) + " with rotations of shape " + to_string(turns.shape()));
  Val pairs = calls::view(turns, {x.dim(1), x.dim(2) / 2, 2});
  return turned_pairs(x, select(pairs, 0), select(pairs, 1));
}

Vals lower(Builder& b, const Call& call) {
  if (call.schema().name == "apply_rotary_emb_interleaved") return interleaved(b, call);
  Val q = call.tensor("xq"), k = call.tensor("xk"), cos = call.tensor("freqs_cos"), sin = call.tensor("freqs_sin");
  check(b, q);
  check(b, k);
  const bool halves = call.schema().name == "apply_rotary_emb_hf";
  const std::int64_t length = q.dim(1), columns = halves ? q.dim(3) : q.dim(3) / 2;
  const std::int64_t start = halves ? call.integer("start_pos") : 0;
  for (Val turns : {cos, sin})
    if (turns.rank() != 2 || turns.dim(1) != columns || start < 0 || turns.dim(0) < start + length ||
        (!halves && turns.dim(0) != length))
      b.refuse("aten.apply_rotary_emb.shape",
               "rotations of shape " + to_string(turns.shape()) + " for an input of shape " + to_string(q.shape()));
  const auto spread = [&](Val turns) {
    if (turns.dim(0) != length) turns = calls::slice(turns, 0, start, length);
    return calls::view(turns, {1, length, 1, columns});
  };
  const auto turn = halves ? turned_halves : turned_pairs;
  return {turn(q, spread(cos), spread(sin)), turn(k, spread(cos), spread(sin))};
}
}  // namespace

AtenOp aten_apply_rotary_emb() {
  return {.schemas = {"et_vk::apply_rotary_emb(Tensor xq, Tensor xk, Tensor freqs_cos, Tensor freqs_sin) -> (Tensor, "
                      "Tensor)",
                      "et_vk::apply_rotary_emb_hf(Tensor xq, Tensor xk, Tensor freqs_cos, Tensor freqs_sin, SymInt "
                      "start_pos) -> (Tensor, Tensor)",
                      "et_vk::apply_rotary_emb_interleaved(Tensor x, Tensor freqs_cis) -> Tensor"},
          .summary = "rotary position embedding (ExecuTorch's Vulkan flow)",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(1,3,4,8), x(1,3,2,8), x(3,4), x(3,4)",
                     "apply_rotary_emb_hf.default: x(1,3,4,8), x(1,3,2,8), x(6,8), x(6,8), 2",
                     "apply_rotary_emb_interleaved.default: x(2,3,8), x(1,3,4,2)"}};
}
}  // namespace tosaic
