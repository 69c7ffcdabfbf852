// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/dense_convolution.h"

#include <algorithm>
#include <array>

namespace tosaic::tosa {
namespace {

// Weight [OC, spatial..., IC].
std::vector<std::int64_t> kernel_of(const View& view) {
  const auto& dims = view.in(1).shape.sizes();
  return {dims.begin() + 1, dims.end() - 1};
}

std::vector<TensorType> infer(const View& view) {
  return convolution_output(view, convolution_sizes(view, kernel_of(view)), view.in(1).shape.size(0));
}

Check check(const View& view) {
  const Shape& weight = view.in(1).shape;
  if (Check c = check_convolution_operands(view, weight.size(weight.rank() - 1), weight.size(0))) return c;
  return check_convolution_slides(view, kernel_of(view));
}

Check level(const View& view, const Level& limits) {
  return level_slides(view, limits, convolution_slides(view, kernel_of(view)));
}

// [OC, taps, IC] -> [taps, IC, OC]: the innermost loop below runs over OC, so that no sum is reordered.
std::vector<double> channels_last(const std::vector<double>& weight, std::int64_t out_channels, std::int64_t rest) {
  std::vector<double> result(weight.size());
  for (std::int64_t o = 0; o < out_channels; ++o)
    for (std::int64_t r = 0; r < rest; ++r)
      result[static_cast<std::size_t>(r * out_channels + o)] = weight[static_cast<std::size_t>(o * rest + r)];
  return result;
}

Status eval(const Run& run) {
  const std::vector<std::int64_t> kernel = kernel_of(run.view);
  std::vector<Slide> slides = convolution_slides(run.view, kernel);
  if (slides.size() == 2) slides.insert(slides.begin(), Slide{});  // a plane is a volume of depth 1
  const std::array<Slide, 3> s{slides[0], slides[1], slides[2]};
  const std::array<std::int64_t, 3> out{positions(s[0]), positions(s[1]), positions(s[2])};
  const Shape& in_shape = run.in[0].type.shape;
  const std::int64_t batch = in_shape.size(0), in_channels = in_shape.size(in_shape.rank() - 1),
                     out_channels = run.in[1].type.shape.size(0);
  const std::int64_t taps = s[0].kernel * s[1].kernel * s[2].kernel;
  TOSAIC_TRY(ConvolutionRun c, start_convolution(run, taps * in_channels));
  const std::vector<double> weight = channels_last(c.weight, out_channels, taps * in_channels);

  std::vector<double> sums(static_cast<std::size_t>(out_channels));
  double* const sum = sums.data();
  std::int64_t written = 0;
  bool fits = true;
  // output[n, o, oc] = bias[oc] + sum over k, ic of input[n, o * stride - before + k * dilation, ic] * weight[oc, k,
  // ic]
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t oz = 0; oz < out[0]; ++oz)
      for (std::int64_t oy = 0; oy < out[1]; ++oy)
        for (std::int64_t ox = 0; ox < out[2]; ++ox) {
          std::fill(sums.begin(), sums.end(), 0.0);
          for (std::int64_t kz = 0; kz < s[0].kernel; ++kz) {
            const std::int64_t z = oz * s[0].stride - s[0].before + kz * s[0].dilation;
            if (z < 0 || z >= s[0].size) continue;
            for (std::int64_t ky = 0; ky < s[1].kernel; ++ky) {
              const std::int64_t y = oy * s[1].stride - s[1].before + ky * s[1].dilation;
              if (y < 0 || y >= s[1].size) continue;
              for (std::int64_t kx = 0; kx < s[2].kernel; ++kx) {
                const std::int64_t x = ox * s[2].stride - s[2].before + kx * s[2].dilation;
                if (x < 0 || x >= s[2].size) continue;
                const double* value =
                    c.input.data() + (((n * s[0].size + z) * s[1].size + y) * s[2].size + x) * in_channels;
                const double* w =
                    weight.data() + ((kz * s[1].kernel + ky) * s[2].kernel + kx) * in_channels * out_channels;
                for (std::int64_t ic = 0; ic < in_channels; ++ic, w += out_channels)
                  for (std::int64_t oc = 0; oc < out_channels; ++oc) sum[oc] += value[ic] * w[oc];
              }
            }
          }
          fits = c.store(run.out[0], written, sums) && fits;
          written += out_channels;
        }
  return fits ? Status{} : accumulator_overflow(run);
}

}  // namespace

Op dense_convolution_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, int spatial) {
  Op op =
      convolution_row(name, schema_number, summary, spatial + 2,
                      {{"pad", AttrKind::i32_list}, {"stride", AttrKind::i32_list}, {"dilation", AttrKind::i32_list}});
  op.infer = infer;
  op.check = check;
  op.level = level;
  op.eval = eval;
  return op;
}

}  // namespace tosaic::tosa
