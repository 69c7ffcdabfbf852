// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/convolution.h"

namespace tosaic::tosa {
namespace {

// Weight [KH, KW, C, M]: input channel c makes the output channels c*M ... c*M + M-1.
std::vector<std::int64_t> kernel_of(const View& view) { return {view.in(1).shape.size(0), view.in(1).shape.size(1)}; }
std::int64_t channels_of(const View& view) { return view.in(1).shape.size(2) * view.in(1).shape.size(3); }

std::vector<TensorType> infer(const View& view) {
  return convolution_output(view, convolution_sizes(view, kernel_of(view)), channels_of(view));
}

Check check(const View& view) {
  if (Check c = check_convolution_operands(view, view.in(1).shape.size(2), channels_of(view))) return c;
  return check_convolution_slides(view, kernel_of(view));
}

Check level(const View& view, const Level& limits) {
  return level_slides(view, limits, convolution_slides(view, kernel_of(view)));
}

Status eval(const Run& run) {
  const std::vector<Slide> slides = convolution_slides(run.view, kernel_of(run.view));
  const Slide &v = slides[0], &h = slides[1];
  const std::int64_t batch = run.in[0].type.shape.size(0), channels = run.in[0].type.shape.size(3);
  const std::int64_t multiplier = run.in[1].type.shape.size(3), out_channels = channels * multiplier;
  TOSAIC_TRY(const ConvolutionRun c, start_convolution(run, v.kernel * h.kernel));
  std::vector<double> sums(static_cast<std::size_t>(out_channels));
  double* const sum = sums.data();
  std::int64_t written = 0;
  bool fits = true;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t oy = 0; oy < positions(v); ++oy)
      for (std::int64_t ox = 0; ox < positions(h); ++ox) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t ky = 0; ky < v.kernel; ++ky) {
          const std::int64_t y = oy * v.stride - v.before + ky * v.dilation;
          if (y < 0 || y >= v.size) continue;
          for (std::int64_t kx = 0; kx < h.kernel; ++kx) {
            const std::int64_t x = ox * h.stride - h.before + kx * h.dilation;
            if (x < 0 || x >= h.size) continue;
            const double* value = c.input.data() + ((n * v.size + y) * h.size + x) * channels;
            const double* w = c.weight.data() + (ky * h.kernel + kx) * out_channels;
            if (multiplier == 1)
              for (std::int64_t i = 0; i < channels; ++i) sum[i] += value[i] * w[i];
            else
              for (std::int64_t i = 0; i < out_channels; ++i) sum[i] += value[i / multiplier] * w[i];
          }
        }
        fits = c.store(run.out[0], written, sums) && fits;
        written += out_channels;
      }
  return fits ? Status{} : accumulator_overflow(run);
}

}  // namespace

Op tosa_depthwise_conv2d() {
  Op op =
      convolution_row("depthwise_conv2d", 5, "2-D convolution of each channel by its own HWCM weights, plus bias", 4,
                      {{"pad", AttrKind::i32_list}, {"stride", AttrKind::i32_list}, {"dilation", AttrKind::i32_list}});
  op.infer = infer;
  op.check = check;
  op.level = level;
  op.eval = eval;
  return op;
}
}  // namespace tosaic::tosa
