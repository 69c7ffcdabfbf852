// SPDX-License-Identifier: Apache-2.0
#include "ir/extent.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension {
namespace {

using namespace scaled_product;

// The input is read as rows of k elements, whatever its shape; the result has as many of n.
tosa::Check check(const tosa::View& view) {
  if (auto violation = quantised::check(view, values, scales)) return violation;
  const std::int64_t n = quantised::rows(view, scales), k = quantised::depth(view, values, scales);
  const Shape& out = view.out().shape;
  if (elements_of(view.in(input).shape) * n != elements_of(out) * k || out[out.rank() - 1] != Dim(n))
    return tosa::broken("scaled_product.output-shape", "rows of {} from [{}] by {} make no [{}]", k,
                        to_string(view.in(input).shape), n, to_string(out));
  const std::int64_t biases = view.in(bias).shape.elements();
  if (biases != 1 && biases != n) return tosa::broken("scaled_product.bias", "{} biases for {} columns", biases, n);
  if (view.inputs() > row_zero + 1 || (view.inputs() > row_scale && view.in(input).dtype != DType::i8))
    return tosa::broken("scaled_product.row-scales", "rows of i8 alone have a scale and a zero point");
  for (std::size_t i = row_scale; i < view.inputs(); ++i)
    if (elements_of(view.in(i).shape) * n != elements_of(out))
      return tosa::broken("scaled_product.row-scales", "operand {} has shape [{}], one element for each row is wanted",
                          i, to_string(view.in(i).shape));
  return std::nullopt;
}

// (q - zero) * scale, as rows of k.
ValueId floats_of_rows(Definition& d, DType type, std::int64_t k) {
  const std::int64_t count = d.type(d.operand(input)).shape.elements() / k;
  ValueId x = d.shaped(d.operand(input), {count, k});
  if (d.type(x).dtype == DType::i8) x = d.cast(x, type);
  if (d.has(row_zero)) x = d.sub(x, d.shaped(d.operand(row_zero), {count, 1}));
  if (d.has(row_scale)) x = d.mul(x, d.shaped(d.operand(row_scale), {count, 1}));
  return d.shaped(x, {1, 1, count, k});
}

std::vector<ValueId> to_tosa(Definition& d) {
  using Sizes = std::vector<std::int64_t>;
  const TensorType result = d.result();
  const ValueId weight = quantised::as_floats(d, values, scales);
  const std::int64_t n = d.type(weight).shape.size(0), k = d.type(weight).shape.size(3);
  const ValueId x = floats_of_rows(d, d.type(weight).dtype, k), zero = d.number(result.dtype, 1, 0);
  const auto wide = [&](ValueId v) { return d.type(v).dtype == result.dtype ? v : d.cast(v, result.dtype); };
  const ValueId sums = d.call(tosa::op::conv2d, {wide(x), wide(weight), wide(d.operand(bias)), zero, zero},
                              {result.dtype, {1, 1, d.type(x).shape.size(2), n}, {}},
                              {{"pad", Sizes{0, 0, 0, 0}},
                               {"stride", Sizes{1, 1}},
                               {"dilation", Sizes{1, 1}},
                               {"acc_type", DType::f32},
                               {"local_bound", false}});
  return {d.shaped(sums, result.shape)};
}

tosa::TypeRows types() {
  tosa::TypeRows rows;
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    for (const DType in : {type, DType::i8})
      for (const DType out : {type, DType::f32}) rows.push_back({{}, {{"in", in}, {"real", type}, {"out", out}}});
  return rows;
}

}  // namespace

// Floats by a quantised weight, or i8 rows by it: sum of (q - zero) * scale * weight, plus bias.
Op extension_scaled_product() {
  return {.row = {.name = "scaled_product",
                  .schema_number = 0,
                  .spirv_number = 0xffff,
                  .summary = "rows of floats, or of quantised values with scales, by a weight quantised in groups",
                  .inputs = {{"input", "in", 1},
                             {"values", "i8", 2, 2},
                             {"bias", "real", 1, 1},
                             {"scales", "real", 2, 2},
                             {.name = "row_parameters", .type = "f32", .list = true}},
                  .attrs = {{quantised::run, tosa::AttrKind::i32}, {quantised::by_columns, tosa::AttrKind::boolean}},
                  .outputs = {{"output", "out", 1}},
                  .types = types(),
                  .check = check,
                  .accumulates = true},
          .to_tosa = to_tosa};
}

}  // namespace tosaic::extension
