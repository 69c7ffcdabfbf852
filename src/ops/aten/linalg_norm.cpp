// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// Vectors by their own operator; of matrices the norms that need no decomposition.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const char* which = call.schema().name == "norm" ? "p" : "ord";
  const bool has_dim = call.schema().argument("dim") && !call.ints("dim").empty();
  const bool keep = keeps_dims(call);
  const std::string name = call.overload() == "ord_str" ? call.text("ord") : "";
  const bool has_order = name.empty() && call.has(which);
  const bool by_matrix = call.schema().name != "norm" && (!name.empty() || has_order) &&
                         (has_dim ? call.ints("dim").size() == 2 : x.rank() == 2);
  Attrs attrs{{"keepdim", keep}};
  if (has_dim) attrs.set("dim", call.ints("dim"));
  if (call.schema().argument("dtype") && call.has("dtype")) attrs.set("dtype", *call.dtype("dtype"));
  const double order = has_order ? call.number(which) : 2.0;
  if (!by_matrix || name == "fro") {
    if (!by_matrix && !name.empty()) b.refuse("aten.linalg_norm.order", "the norm '" + name + "' is one of matrices");
    attrs.set("ord", order);
    return b.aten(aten::op::linalg_vector_norm, {x}, attrs);
  }
  if (name == "nuc" || (std::fabs(order) != 1 && !std::isinf(order)))
    b.refuse("aten.linalg_norm.order", "this norm of a matrix needs its singular values");
  // The largest (smallest) sum of a column (1) or a row (infinity).
  Ints dims = has_dim ? call.ints("dim") : Ints{0, 1};
  for (auto& d : dims) d = d < 0 ? d + x.rank() : d;
  const int summed_dim = static_cast<int>(dims[std::isinf(order) ? 1 : 0]);
  const int other_dim = static_cast<int>(dims[std::isinf(order) ? 0 : 1]);
  Val sums = calls::sum(calls::abs(with_dtype(b, call, x)), {summed_dim}, true);
  Val y = order > 0 ? calls::amax(sums, {other_dim}, true) : calls::amin(sums, {other_dim}, true);
  if (keep) return y;
  Ints left;
  for (int i = 0; i < x.rank(); ++i)
    if (i != summed_dim && i != other_dim) left.push_back(x.dim(i));
  return calls::view(y, Shape(left));
}
}  // namespace

AtenOp aten_linalg_norm() {
  return {.schemas = {"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                      "dtype=None) -> Tensor",
                      "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                      "dtype=None) -> Tensor",
                      "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
                      "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor"},
          .summary = "the norm of vectors or matrices",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"default: x(2,3,4)", "default: x(2,3,4), 2, [-1], True", "default: x(3,4), 1",
                     "default: x(2,3,4), -inf, [1,2]", "default: x(2,3,4), inf, [0,-1], True", "default: x(5), 3.0",
                     "ord_str: x(2,3,4), 'fro', [1,2]", "ord_str: x(3,4), 'fro'", "norm.Scalar: x(2,3)",
                     "norm.ScalarOpt_dim: x(2,3,4), 1, [1], True", "norm.ScalarOpt_dim: x(2,3,4), None, [0,2]"},
          .has_exact_form = true};
}
}  // namespace tosaic
