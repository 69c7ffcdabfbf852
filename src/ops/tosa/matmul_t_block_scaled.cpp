// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/block_scaled.h"
#include "ops/definitions/matmul_by_transposed.h"

namespace tosaic::tosa {
namespace {

// A [N, H, C] times B [D, W, C] transposed, where D is N, or 1 for one matrix that all share, each with its scales:
// operands {A_data, A_scale, B_data, B_scale}.
std::vector<TensorType> infer(const View& view) {
  const Shape &a = view.in(0).shape, &b = view.in(2).shape;
  return {{DType::f32, Shape(std::vector<Dim>{a[0], a[1], b[1]}), std::nullopt}};
}

Check check(const View& view) {
  if (Check c = block_scaled::check(view, 0, 1)) return c;
  if (Check c = block_scaled::check(view, 2, 3)) return c;
  return check_transposed(view, 2);
}

Status eval(const Run& run) {
  const auto a = block_scaled::as_doubles(run.in[0], run.in[1]), b = block_scaled::as_doubles(run.in[2], run.in[3]);
  store_products(run.out[0], a, b);
  return {};
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const ValueId a = block_scaled::as_floats(d, d.operand(0), d.operand(1)),
                b = block_scaled::as_floats(d, d.operand(2), d.operand(3)), zero = d.number(DType::f32, 1, 0);
  return {matmul_by_transposed(d, {a, b, zero, zero}, d.result())};
}
}  // namespace

Op tosa_matmul_t_block_scaled() {
  return {
      .name = "matmul_t_block_scaled",
      .schema_number = 76,
      .spirv_number = 0xffff,
      .summary = "the product of each block-scaled matrix of A with one of B, transposed",
      .inputs = {{"A_data", "element", 3, 3},
                 {"A_scale", block_scaled::scale_type, 3, 3},
                 {"B_data", "element", 3, 3},
                 {"B_scale", block_scaled::scale_type, 3, 3}},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output", "f32", 3, 3}},
      .types = block_scaled::elements("element"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
