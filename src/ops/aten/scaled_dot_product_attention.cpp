// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// softmax(q k^T * scale + mask) v. Hidden positions get the weight 0 after the exponential, and the row's least
// score before it: that keeps every tensor in the range of the scores, which integer forms need. A row with all
// positions hidden gives zeros, as PyTorch does.
Val hidden_softmax(Val scores, Val shown, bool rows_may_be_empty) {
  Builder& b = scores.builder();
  const int last = scores.rank() - 1;
  Val visible = calls::where(shown, scores, calls::amin(scores, {last}, true));
  Val e = calls::exp(calls::sub(visible, calls::amax(visible, {last}, true)));
  e = calls::where(shown, e, b.scalar(0.0, scores.dtype()));
  Val total = calls::sum(e, {last}, true);
  if (rows_may_be_empty) total = calls::at_least(total, 1.0);  // every other row holds exp(0)
  return calls::mul(e, calls::reciprocal(total));
}

// What a mask known at compile time says: which positions it hides, and nothing else?
struct KnownMask {
  bool plain = false, hides = false, empty_rows = false;
  std::vector<std::int64_t> shown;
};
KnownMask known(Builder& b, Val mask) {
  KnownMask k;
  if (!mask.is_constant() || mask.rank() < 1) return k;
  const Bytes& data = b.graph()[mask.id()].constant;
  const std::int64_t n = mask.shape().elements(), row = mask.dim(-1);
  k.plain = true;
  bool finite = false;
  for (std::int64_t i = 0; i < n; i += row) {
    bool any = false;
    for (std::int64_t j = i; j < i + row; ++j) {
      const double v = element_as_double(mask.dtype(), data.data(), static_cast<std::size_t>(j));
      const bool shows = mask.dtype() == DType::boolean ? v != 0 : v == 0;
      if (mask.dtype() != DType::boolean && !shows && v > -1e4) k.plain = false;  // a bias, not a mask
      k.shown.push_back(shows);
      any |= shows;
      finite |= !shows && mask.dtype() != DType::boolean && std::isfinite(v);
      k.hides |= !shows;
    }
    k.empty_rows |= !any;
  }
  if (k.empty_rows && finite) k.plain = false;  // large negative numbers all along a row cancel out
  return k;
}

Vals lower(Builder& b, const Call& call) {
  Val q = call.tensor("query"), k = call.tensor("key"), v = call.tensor("value");
  auto mask = call.optional_tensor("attn_mask");
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    b.refuse("aten.scaled_dot_product_attention.rank", "queries of shape " + to_string(q.shape()) + " are no matrices");
  if (call.number("dropout_p") != 0)
    b.refuse("aten.scaled_dot_product_attention.dropout",
             "dropout_p " + to_string(call.number("dropout_p")) + " is for training: export the model after eval()");
  if (call.schema().argument("enable_gqa") && call.flag("enable_gqa") && q.rank() >= 3 && k.rank() >= 3 &&
      v.rank() >= 3 && k.dim(-3) != q.dim(-3)) {
    auto repeated = [&](Val x) {
      if (x.dim(-3) < 1 || q.dim(-3) % x.dim(-3))
        b.refuse("aten.scaled_dot_product_attention.heads",
                 std::to_string(q.dim(-3)) + " query heads for " + std::to_string(x.dim(-3)) + " key heads");
      return b.aten(aten::op::repeat_interleave_self_int, {x},
                    {{"repeats", q.dim(-3) / x.dim(-3)}, {"dim", std::int64_t{x.rank() - 3}}});
    };
    k = repeated(k);
    v = repeated(v);
  }
  const double scale = call.has("scale") ? call.number("scale") : 1.0 / std::sqrt(static_cast<double>(q.dim(-1)));
  Val scores = calls::matmul(calls::mul(q, scale), calls::transpose(k, -2, -1));
  const std::int64_t rows = scores.dim(-2), columns = scores.dim(-1);
  Val weights;
  if (call.flag("is_causal")) {
    if (mask) b.refuse("aten.scaled_dot_product_attention.mask", "attn_mask and is_causal are given at once");
    std::vector<std::int64_t> shown;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) shown.push_back(c <= r);
    weights = hidden_softmax(scores, b.integers(shown, DType::boolean, {rows, columns}), false);
  } else if (!mask) {
    weights = calls::softmax(scores, -1);
  } else if (KnownMask m = known(b, *mask); m.plain) {
    weights = m.hides ? hidden_softmax(scores, b.integers(m.shown, DType::boolean, mask->shape()), m.empty_rows)
                      : calls::softmax(scores, -1);
  } else if (mask->dtype() == DType::boolean) {
    weights = hidden_softmax(scores, *mask, true);
  } else {
    weights = b.aten(aten::op::_safe_softmax, {calls::add(scores, *mask)}, {{"dim", std::int64_t{-1}}});
  }
  return calls::matmul(weights, v);
}
}  // namespace

AtenOp aten_scaled_dot_product_attention() {
  return {
      .schemas = {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
                  "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"},
      .summary = "softmax(q k^T / sqrt(d) + mask) v",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(1,2,4,8), x(1,2,5,8), x(1,2,5,8)", "x(2,2,4,8), x(2,2,4,8), x(2,2,4,6), None, 0.0, True",
                 "x(1,2,4,8), x(1,2,5,8), x(1,2,5,8), b(1,1,4,5)", "x(1,2,4,8), x(1,2,5,8), x(1,2,5,8), const(b(4,5))",
                 "x(1,2,4,8), x(1,2,5,8), x(1,2,5,8), x(4,5)", "x(4,8), x(5,8), x(5,3), None, 0.0, False, scale=0.5",
                 "x(1,4,3,8), x(1,2,5,8), x(1,2,5,8), None, 0.0, False, enable_gqa=True"}};
}
}  // namespace tosaic
