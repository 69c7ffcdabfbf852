// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension {
namespace {

using namespace scaled_gather;

tosa::Check check(const tosa::View& view) { return quantised::check(view, values, scales); }

// indices [1][w] -> [1][w][k]
std::vector<TensorType> infer(const tosa::View& view) {
  Shape shape(std::vector<Dim>{Dim(1), view.in(indices).shape[1], Dim(quantised::depth(view, values, scales))});
  return {{view.in(scales).dtype, std::move(shape), std::nullopt}};
}

std::vector<ValueId> to_tosa(Definition& d) {
  const ValueId table = quantised::as_floats(d, values, scales);
  const Shape rows{1, d.type(d.operand(scales)).shape.size(0), d.result().shape.size(2)};
  return {d.call(tosa::op::gather, {d.shaped(table, rows), d.operand(indices)}, d.result())};
}

tosa::TypeRows types() {
  tosa::TypeRows rows;
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) rows.push_back({{}, {{"real", type}}});
  return rows;
}

}  // namespace

Op extension_scaled_gather() {
  return {.row = {.name = "scaled_gather",
                  .schema_number = 0,
                  .spirv_number = 0xffff,
                  .summary = "rows of a table that is quantised in groups, as floats",
                  .inputs = {{"values", "i8", 2, 2}, {"indices", "i32", 2, 2}, {"scales", "real", 2, 2}},
                  .attrs = {{quantised::run, tosa::AttrKind::i32}},
                  .outputs = {{"output", "real", 3, 3}},
                  .types = types(),
                  .infer = infer,
                  .check = check,
                  .moves = tosa::Moves::chosen},
          .to_tosa = to_tosa};
}

}  // namespace tosaic::extension
