// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension {
namespace {

using namespace softmax;

tosa::Check check(const tosa::View& view) {
  if (auto violation = tosa::check_axis(view)) return violation;
  if (view.inputs() > mask + 1) return tosa::broken("softmax.operands", "{} operands, two at most", view.inputs());
  if (view.inputs() <= mask) return std::nullopt;
  const Shape &all = view.in(input).shape, &shown = view.in(mask).shape;
  bool broadcasts = all.rank() == shown.rank();
  for (int i = 0; broadcasts && i < all.rank(); ++i) broadcasts = shown[i] == all[i] || shown[i] == 1;
  if (broadcasts) return std::nullopt;
  return tosa::broken("softmax.mask", "a mask of shape [{}] does not broadcast to [{}]", to_string(shown),
                      to_string(all));
}

std::vector<ValueId> to_tosa(Definition& d) {
  ValueId x = d.operand(input);
  const auto along = d.node().attrs.get<std::int64_t>(axis);
  const bool is_safe = d.node().attrs.get<bool>(safe), masked = d.has(mask);
  const TensorType& type = d.type(x);
  const DType dtype = type.dtype;
  const int rank = type.rank();
  const double lowest = dtype == DType::f16 ? -65504 : std::numeric_limits<float>::lowest();
  // What is hidden is a row's least element: it has no part in the largest, unless all are hidden.
  if (masked) x = d.select(d.operand(mask), x, d.reduce(tosa::op::reduce_min, x, along));
  ValueId top = d.reduce(tosa::op::reduce_max, x, along);
  if (is_safe && !masked) top = d.clamp(top, lowest);
  ValueId e = d.unary(tosa::op::exp, d.sub(x, top));
  if (masked) e = d.select(d.operand(mask), e, d.number(dtype, rank, 0));
  ValueId total = d.reduce(tosa::op::reduce_sum, e, along);
  if (is_safe) total = d.clamp(total, 1);  // every other row holds exp(0)
  return {d.mul(e, d.unary(tosa::op::reciprocal, total))};
}

std::vector<Form> forms(const Ending& ending) {
  const TensorType& result = ending.result;
  std::vector<Form> all;
  if (ending.op != tosa::op::mul || !is_float(result.dtype)) return all;
  for (std::int64_t along = result.rank() - 1; along >= 0; --along)
    for (const bool is_safe : {false, true})
      for (const bool masked : {false, true}) {
        Form form{{result}, {{axis, along}, {safe, is_safe}}, {result}};
        if (masked) form.operands.push_back(result.with(DType::boolean));
        all.push_back(std::move(form));
      }
  return all;
}

}  // namespace

Op extension_softmax() {
  return {.row = {.name = "softmax",
                  .schema_number = 0,
                  .spirv_number = 0xffff,
                  .summary = "weights along an axis that add up to 1: exp(x - max) / sum(exp(x - max))",
                  .inputs = {{"input", "in_out", 1}, {.name = "mask", .type = "bool", .list = true}},
                  .attrs = {{axis, tosa::AttrKind::i32}, {safe, tosa::AttrKind::boolean}},
                  .outputs = {{"output", "in_out", 1}},
                  .types = tosa::floats("in_out"),
                  .infer = tosa::same_as_input,
                  .check = check},
          .to_tosa = to_tosa,
          .forms = forms};
}

}  // namespace tosaic::extension
