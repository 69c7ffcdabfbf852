// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/bounds.h"
#include "ops/definitions/pool.h"
#include "ops/definitions/scaling.h"

namespace tosaic::tosa {
namespace {

// Operands {input, input_zp, output_zp}. Padding does not count: each window is divided by what it really covers.
Check check(const View& view) {
  if (Check c = check_zero_point(view, 1, "input-zp", view.in(0).dtype)) return c;
  if (Check c = check_zero_point(view, 2, "output-zp", view.in(0).dtype)) return c;
  return check_pool(view);
}

Status eval(const Run& run) {
  const DType type = run.in[0].type.dtype;
  const std::vector<double> in = as_doubles(run.in[0], first_as_double(run.in[1]));
  const auto output_zp = static_cast<std::int64_t>(first_as_double(run.in[2]));
  const auto slides = pool_slides(run);
  const std::int64_t channels = run.in[0].type.shape.size(3), height = slides[0].size, width = slides[1].size;
  std::vector<double> sums(static_cast<std::size_t>(channels));
  bool fits = true;
  for_each_window(slides, run.in[0].type.shape.size(0), [&](auto o, auto n, auto y0, auto y1, auto x0, auto x1) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t y = y0; y < y1; ++y)
      for (std::int64_t x = x0; x < x1; ++x) {
        const double* row = in.data() + ((n * height + y) * width + x) * channels;
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += row[c];
      }
    const std::int64_t count = (y1 - y0) * (x1 - x0);
    if (is_float(type)) {
      for (double& sum : sums) sum /= static_cast<double>(count);
    } else {
      const ReciprocalScale scale = reciprocal_scale(static_cast<std::uint32_t>(count));
      for (double& sum : sums) {
        const auto value = apply_scale_32(static_cast<std::int64_t>(sum), scale.multiplier, scale.shift, false);
        fits = fits && value;
        const IntegerRange range = range_of(type);
        sum = static_cast<double>(std::clamp(value.value_or(0) + output_zp, range.lowest, range.highest));
      }
    }
    store_doubles(run.out[0], o * channels, sums);
  });
  return fits ? Status{} : unpredictable(run, "a sum does not fit the accumulator's i32");
}

}  // namespace

Op tosa_avg_pool2d() {
  using enum DType;
  return {
      .name = "avg_pool2d",
      .schema_number = 2,
      .spirv_number = 1,
      .summary = "the mean of each window of an NHWC tensor, padding left out",
      .inputs = {{"input", "in_out", 4, 4},
                 {.name = "input_zp", .type = "in_out", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "output_zp", .type = "in_out", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {{"kernel", AttrKind::i32_list},
                {"stride", AttrKind::i32_list},
                {"pad", AttrKind::i32_list},
                {"acc_type", AttrKind::dtype}},
      .outputs = {{"output", "in_out", 4, 4}},
      .types = with(integers("in_out", {i8}), "acc", i32) + with(rows({Feature::int16}, "in_out", {i16}), "acc", i32) +
               with(fp8s("in_out"), "acc", f16) + with(rows({Feature::pro_fp}, "in_out", {f16}), "acc", f16) +
               with(rows({Feature::pro_fp}, "in_out", {f16, f32}), "acc", f32) +
               with(rows({Feature::bf16}, "in_out", {bf16}), "acc", f32),
      .infer = infer_pool,
      .check = check,
      .level = level_pool,
      .eval = eval,
      .bounds = bounds::mean,
      .accumulates = true,
  };
}
}  // namespace tosaic::tosa
