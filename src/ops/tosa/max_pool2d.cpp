// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"
#include "ops/definitions/pool.h"

namespace tosaic::tosa {
namespace {

Status eval(const Run& run) {
  const std::vector<double> in = as_doubles(run.in[0]);
  const auto slides = pool_slides(run);
  const bool ignore_nan = is_float(run.in[0].type.dtype) && ignores_nan(run.view);
  const std::int64_t channels = run.in[0].type.shape.size(3), height = slides[0].size, width = slides[1].size;
  // Every window covers at least one element. Ignored NaNs leave NaN only where there is nothing else.
  std::vector<double> largest(static_cast<std::size_t>(channels));
  for_each_window(slides, run.in[0].type.shape.size(0), [&](auto o, auto n, auto y0, auto y1, auto x0, auto x1) {
    for (std::int64_t y = y0; y < y1; ++y)
      for (std::int64_t x = x0; x < x1; ++x) {
        const double* row = in.data() + ((n * height + y) * width + x) * channels;
        if (y == y0 && x == x0)
          largest.assign(row, row + channels);
        else
          for (std::size_t c = 0; c < largest.size(); ++c) largest[c] = larger(largest[c], row[c], ignore_nan);
      }
    store_doubles(run.out[0], o * channels, largest);
  });
  return {};
}

}  // namespace

Op tosa_max_pool2d() {
  using enum DType;
  return {
      .name = "max_pool2d",
      .schema_number = 8,
      .spirv_number = 7,
      .summary = "the largest element of each window of an NHWC tensor",
      .inputs = {{"input", "in_out", 4, 4}},
      .attrs = {{"kernel", AttrKind::i32_list},
                {"stride", AttrKind::i32_list},
                {"pad", AttrKind::i32_list},
                {"nan_mode", AttrKind::nan_mode}},
      .outputs = {{"output", "in_out", 4, 4}},
      .types = integers("in_out", {i8}) + rows({Feature::int16}, "in_out", {i16}) + fp8s("in_out") + floats("in_out"),
      .infer = infer_pool,
      .check = check_pool,
      .level = level_pool,
      .eval = eval,
      .moves = Moves::compared,
      .bounds = bounds::first,
      .accumulates = true,
  };
}
}  // namespace tosaic::tosa
