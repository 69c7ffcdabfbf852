// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/definitions/bounds.h"
#include "ops/definitions/matmul_by_transposed.h"
#include "ops/definitions/window.h"

namespace tosaic::tosa {
namespace {

// A [N, H, C] times B [D, W, C] transposed, where D is N, or 1 for one matrix that all share; operands {A, B, A_zp,
// B_zp}.
std::vector<TensorType> infer(const View& view) {
  const Shape &a = view.in(0).shape, &b = view.in(1).shape;
  DType type = DType::f32;
  if (view.in(0).dtype == DType::i8) type = DType::i32;
  if (view.in(0).dtype == DType::i16) type = DType::i48;
  // Floats: as the node declares.
  if (type == DType::f32 && !view.node().outputs.empty() && is_float(view.out().dtype)) type = view.out().dtype;
  return {{type, Shape(std::vector<Dim>{a[0], a[1], b[1]}), std::nullopt}};
}

Check check(const View& view) {
  if (Check c = check_transposed(view, 1)) return c;
  if (Check c = check_zero_point(view, 2, "a-zp", view.in(0).dtype)) return c;
  return check_zero_point(view, 3, "b-zp", view.in(1).dtype);
}

Status eval(const Run& run) {
  const std::vector<double> a = as_doubles(run.in[0], first_as_double(run.in[2]));
  const std::vector<double> b = as_doubles(run.in[1], first_as_double(run.in[3]));
  if (store_products(run.out[0], a, b)) return {};
  return unpredictable(run, fmt::format("a sum does not fit the accumulator's {}", name_of(run.out[0].type.dtype)));
}

// Floats of any two types, each with its extension.
TypeRows types() {
  using enum DType;
  TypeRows result{{{Feature::pro_int}, {{"a", i8}, {"b", i8}, {"out", i32}}},
                  {{Feature::int16}, {{"a", i16}, {"b", i16}, {"out", i48}}}};
  constexpr std::array<std::pair<DType, Feature>, 5> kinds{{{f16, Feature::pro_fp},
                                                            {f32, Feature::pro_fp},
                                                            {bf16, Feature::bf16},
                                                            {f8e4m3, Feature::fp8e4m3},
                                                            {f8e5m2, Feature::fp8e5m2}}};
  const auto add = [&](auto a, auto b, DType out) {
    TypeRow row{{a.second}, {{"a", a.first}, {"b", b.first}, {"out", out}}};
    if (a.second == Feature::pro_fp) row.needs = {b.second};
    if (a.second != b.second && a.second != Feature::pro_fp && b.second != Feature::pro_fp) row.and_needs = b.second;
    result.push_back(std::move(row));
  };
  for (const auto& a : kinds)
    for (const auto& b : kinds) {
      add(a, b, f32);
      if (a.first == f32 || b.first == f32) continue;
      add(a, b, a.first == f16 && b.first == f16 ? f16 : bf16);
    }
  return result;
}

// Of types that MATMUL does not have, as f32.
std::vector<ValueId> in_1_0(extension::Definition& d) {
  std::array<ValueId, 4> operands{d.operand(0), d.operand(1), d.operand(2), d.operand(3)};
  const DType a = d.type(operands[0]).dtype, b = d.type(operands[1]).dtype, out = d.result().dtype;
  const bool older =
      a == b && (!is_float(a) || a == out || (out == DType::f32 && a != DType::f8e4m3 && a != DType::f8e5m2));
  if (!older)
    for (std::size_t i = 0; i < 4; ++i)
      operands[i] = i < 2 ? d.cast(operands[i], DType::f32) : d.number(DType::f32, 1, 0);
  const TensorType made = older ? d.result() : d.result().with(DType::f32);
  const ValueId product = matmul_by_transposed(d, operands, made);
  return {made.dtype == out ? product : d.cast(product, out)};
}
}  // namespace

Op tosa_matmul_t() {
  return {
      .name = "matmul_t",
      .schema_number = 100,
      .spirv_number = 0xffff,
      .summary = "the product of each matrix of A with one of B, transposed",
      .inputs = {{"A", "a", 3, 3},
                 {"B", "b", 3, 3},
                 {.name = "A_zp", .type = "a", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "B_zp", .type = "b", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {},
      .outputs = {{"output", "out", 3, 3}},
      .types = types(),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .bounds = bounds::inner_product,
      .accumulates = true,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
