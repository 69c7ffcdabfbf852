// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/bounds.h"
#include "ops/definitions/window.h"

namespace tosaic::tosa {
namespace {

// A [N, H, C] times B [N, C, W]; operands {A, B, A_zp, B_zp}.
std::vector<TensorType> infer(const View& view) {
  const Shape &a = view.in(0).shape, &b = view.in(1).shape;
  Shape shape(std::vector<Dim>{a[0], a[1], b[2]});
  DType type = view.in(0).dtype;
  switch (type) {
    case DType::i8: type = DType::i32; break;
    case DType::i16: type = DType::i48; break;
    case DType::f8e4m3:
    case DType::f8e5m2: type = DType::f16; break;
    case DType::bf16: type = DType::f32; break;
    case DType::f16:  // f16 or f32, as the node declares
      if (!view.node().outputs.empty() && view.out().dtype == DType::f32 && view.out().rank() == 3) type = DType::f32;
      break;
    default: break;
  }
  return {{type, std::move(shape), std::nullopt}};
}

Check check(const View& view) {
  const Shape &a = view.in(0).shape, &b = view.in(1).shape;
  if (a[0] != b[0]) return broken("matmul.batch", "A has {} matrices, B has {}", to_string(a[0]), to_string(b[0]));
  if (a[2] != b[1])
    return broken("matmul.inner-size", "A has {} columns, B has {} rows", to_string(a[2]), to_string(b[1]));
  if (Check c = check_zero_point(view, 2, "a-zp", view.in(0).dtype)) return c;
  return check_zero_point(view, 3, "b-zp", view.in(1).dtype);
}

// Integers are summed in doubles, which is exact below 2^53: products are below 2^30, and every 2^22 of them
// the sum is held to the accumulator's dtype (at most 48 bits).
constexpr std::int64_t block = std::int64_t{1} << 22;

bool within(const std::vector<double>& sums, DType type) {
  if (is_float(type)) return true;
  const IntegerRange range = range_of(type);
  return std::all_of(sums.begin(), sums.end(), [&](double v) {
    return v >= static_cast<double>(range.lowest) && v <= static_cast<double>(range.highest);
  });
}

Status eval(const Run& run) {
  const std::vector<double> a = as_doubles(run.in[0], first_as_double(run.in[2]));
  const std::vector<double> b = as_doubles(run.in[1], first_as_double(run.in[3]));
  const Shape &left = run.in[0].type.shape, &out = run.out[0].type.shape;
  const std::int64_t inner = left.size(2), width = out.size(2);
  std::vector<double> sums(static_cast<std::size_t>(width));
  double* const sum = sums.data();
  bool fits = true;
  for (std::int64_t n = 0; n < out.size(0); ++n)
    for (std::int64_t h = 0; h < out.size(1); ++h) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const double* row = a.data() + (n * out.size(1) + h) * inner;
      for (std::int64_t c = 0; c < inner; ++c) {
        const double* column = b.data() + (n * inner + c) * width;
        for (std::int64_t w = 0; w < width; ++w) sum[w] += row[c] * column[w];
        if ((c + 1) % block == 0) fits = fits && within(sums, run.out[0].type.dtype);
      }
      fits = store_doubles(run.out[0], (n * out.size(1) + h) * width, sums) && fits;
    }
  if (fits) return {};
  return unpredictable(run, fmt::format("a sum does not fit the accumulator's {}", name_of(run.out[0].type.dtype)));
}

TypeRow row(Feature needs, DType in, DType out) { return {{needs}, {{"in", in}, {"out", out}}}; }
}  // namespace

Op tosa_matmul() {
  using enum DType;
  return {
      .name = "matmul",
      .schema_number = 7,
      .spirv_number = 6,
      .summary = "the product of each matrix of A with the same matrix of B",
      .inputs = {{"A", "in", 3, 3},
                 {"B", "in", 3, 3},
                 {.name = "A_zp", .type = "in", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "B_zp", .type = "in", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {},
      .outputs = {{"output", "out", 3, 3}},
      .types = {row(Feature::pro_int, i8, i32), row(Feature::int16, i16, i48), row(Feature::fp8e4m3, f8e4m3, f16),
                row(Feature::fp8e5m2, f8e5m2, f16), row(Feature::pro_fp, f16, f16), row(Feature::pro_fp, f16, f32),
                row(Feature::pro_fp, f32, f32), row(Feature::bf16, bf16, f32)},
      .infer = infer,
      .check = check,
      .eval = eval,
      .bounds = bounds::inner_product,
      .accumulates = true,
      .in_core_aten =
          [](const View& node, CoreAten& calls) {
            if (node.in(0).dtype != node.out().dtype) return false;
            return calls.gives(aten::op::bmm, {calls.operand(0), calls.operand(1)});
          },
  };
}
}  // namespace tosaic::tosa
