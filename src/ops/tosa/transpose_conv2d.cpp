// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/convolution.h"

namespace tosaic::tosa {
namespace {

// Weight [OC, KH, KW, IC]; out_pad {top, bottom, left, right} may be negative, which crops.
struct Axis {
  std::int64_t size, kernel, before, after, stride;
  std::int64_t out() const {
    constexpr std::int64_t most = INT32_MAX;  // beyond it products could overflow, and no tensor fits
    if (size > most || kernel > most || stride < 1 || stride > most) return 0;
    return (size - 1) * stride + before + after + kernel;
  }
};
Axis axis_of(const View& view, int i, std::int64_t size) {
  const auto k = static_cast<std::size_t>(i);
  return {size, view.in(1).shape.size(1 + i), item(view, "out_pad", 2 * k, 0), item(view, "out_pad", 2 * k + 1, 0),
          item(view, "stride", k, 1)};
}
std::vector<Axis> axes_of(const View& view) {
  return {axis_of(view, 0, view.in(0).shape.size(1)), axis_of(view, 1, view.in(0).shape.size(2))};
}

std::vector<TensorType> infer(const View& view) {
  std::vector<Dim> sizes;
  for (int i = 0; i < 2; ++i) {
    const Dim& size = view.in(0).shape[1 + i];
    const Axis axis = axis_of(view, i, size.is_number() ? size.value() : 1);
    sizes.push_back(size.is_number() ? Dim(axis.out()) : (size - 1) * Dim(axis.stride) + Dim(axis.out()));
  }
  return convolution_output(view, sizes, view.in(1).shape.size(0));
}

Check check(const View& view) {
  if (Check c = check_convolution_operands(view, view.in(1).shape.size(3), view.in(1).shape.size(0))) return c;
  if (Check c = check_length(view, "out_pad", 4)) return c;
  if (Check c = check_length(view, "stride", 2)) return c;
  for (const Axis& a : axes_of(view)) {
    if (a.before <= -a.kernel || a.after <= -a.kernel)
      return broken("transpose_conv2d.out-pad", "out_pad {} crops a whole kernel of {}", std::min(a.before, a.after),
                    a.kernel);
    if (a.stride < 1) return broken("transpose_conv2d.stride", "stride {} must be at least 1", a.stride);
    if (a.out() < 1)
      return broken("transpose_conv2d.output-size", "out_pad {} and {} leave nothing of an input of {}", a.before,
                    a.after, a.size);
  }
  return std::nullopt;
}

Check level(const View& view, const Level& limits) {
  std::vector<Slide> slides;
  for (const Axis& a : axes_of(view))
    slides.push_back({.size = a.size, .kernel = a.kernel, .before = a.before, .after = a.after, .stride = a.stride});
  return level_slides(view, limits, slides);
}

// Each input pixel stamps its weights on the output: output[y*stride + top + ky] += input[y] * weight[ky].
Status eval(const Run& run) {
  const auto axes = axes_of(run.view);
  const Axis &v = axes[0], &h = axes[1];
  const std::int64_t batch = run.in[0].type.shape.size(0), in_channels = run.in[0].type.shape.size(3),
                     out_channels = run.in[1].type.shape.size(0);
  TOSAIC_TRY(const ConvolutionRun c, start_convolution(run, v.kernel * h.kernel * in_channels));
  const std::int64_t image = v.out() * h.out() * out_channels;
  bool fits = true;
  for (std::int64_t n = 0; n < batch; ++n) {
    std::vector<double> sums(static_cast<std::size_t>(image));
    for (std::int64_t y = 0; y < v.size; ++y)
      for (std::int64_t x = 0; x < h.size; ++x) {
        const double* value = c.input.data() + ((n * v.size + y) * h.size + x) * in_channels;
        for (std::int64_t ky = 0; ky < v.kernel; ++ky) {
          const std::int64_t oy = y * v.stride + v.before + ky;
          if (oy < 0 || oy >= v.out()) continue;
          for (std::int64_t kx = 0; kx < h.kernel; ++kx) {
            const std::int64_t ox = x * h.stride + h.before + kx;
            if (ox < 0 || ox >= h.out()) continue;
            double* sum = sums.data() + (oy * h.out() + ox) * out_channels;
            for (std::int64_t oc = 0; oc < out_channels; ++oc) {
              const double* w = c.weight.data() + ((oc * v.kernel + ky) * h.kernel + kx) * in_channels;
              double total = 0;
              for (std::int64_t ic = 0; ic < in_channels; ++ic) total += value[ic] * w[ic];
              sum[oc] += total;
            }
          }
        }
      }
    for (std::int64_t i = 0; i < image; i += out_channels)
      fits = c.store(run.out[0], n * image + i,
                     std::span(sums).subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(out_channels))) &&
             fits;
  }
  return fits ? Status{} : accumulator_overflow(run);
}

}  // namespace

Op tosa_transpose_conv2d() {
  Op op = convolution_row("transpose_conv2d", 10, "2-D transposed convolution of NHWC by OHWI weights, plus bias", 4,
                          {{"out_pad", AttrKind::i32_list}, {"stride", AttrKind::i32_list}});
  op.infer = infer;
  op.check = check;
  op.level = level;
  op.eval = eval;
  return op;
}
}  // namespace tosaic::tosa
