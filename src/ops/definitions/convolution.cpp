// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/convolution.h"

#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "ops/definitions/bounds.h"

namespace tosaic::tosa {
namespace {

// input, weight, output and accumulator of each supported combination (spec "CONV2D", table of types).
TypeRow row(Feature needs, DType in, DType weight, DType out, DType acc) {
  return {{needs}, {{"in", in}, {"weight", weight}, {"out", out}, {"acc", acc}}};
}

// Every weight as large as its dtype allows; where that is too much, the weights themselves.
Bounds sums_of_products(const View& view, const BoundsOf& in) {
  const DType weight = view.in(1).dtype, result = view.out().dtype;
  const double x = bounds::magnitude(bounds::centred(in, 0, 3)), bias = bounds::magnitude(in(2));
  const double zero_point = bounds::magnitude(in(4));
  const std::int64_t channels = view.out().shape.size(view.out().rank() - 1), n = view.in(1).shape.elements();
  const double terms = static_cast<double>(n) / static_cast<double>(channels);
  const double largest =
      is_float(weight) ? Bounds{}.highest : -static_cast<double>(range_of(weight).lowest) + zero_point;
  double most = terms * x * largest + bias;
  if (is_float(result) || most > static_cast<double>(range_of(result).highest))
    if (const std::vector<double> sums = largest_sums(view, in); !sums.empty()) most = std::ranges::max(sums) + bias;
  return {-most, most};
}

}  // namespace

std::vector<double> largest_sums(const View& view, const BoundsOf& in) {
  const TensorType& weight = view.in(1);
  const auto n = static_cast<std::size_t>(weight.shape.elements());
  const auto channels = static_cast<std::size_t>(view.out().shape.size(view.out().rank() - 1));
  if (view.constant(1).null() || n == 0 || channels == 0 || n % channels != 0) return {};
  const double x = bounds::magnitude(bounds::centred(in, 0, 3)), zero_point = bounds::magnitude(in(4));
  // OHWI, or HWCM of a depthwise one: the channel is the first dim or the last two.
  const bool last = view.node().op == op::depthwise_conv2d;
  std::vector<double> sums(channels, 0);
  for (std::size_t k = 0; k < n; ++k)
    sums[last ? k % channels : k / (n / channels)] +=
        (std::fabs(element_as_double(weight.dtype, view.constant(1).data(), k)) + zero_point) * x;
  return sums;
}

Op convolution_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, int rank,
                   std::vector<AttrDef> attrs) {
  using enum DType;
  attrs.push_back({"acc_type", AttrKind::dtype});
  attrs.push_back({"local_bound", AttrKind::boolean});
  Op op;
  op.name = name;
  op.schema_number = schema_number;
  op.spirv_number = static_cast<std::uint16_t>(schema_number - 1);
  op.summary = summary;
  op.inputs = {{"input", "in", rank, rank},
               {"weight", "weight", rank, rank},
               {"bias", "out", 1, 1},
               {.name = "input_zp", .type = "in", .min_rank = 1, .max_rank = 1, .constant = true},
               {.name = "weight_zp", .type = "weight", .min_rank = 1, .max_rank = 1, .constant = true}};
  op.attrs = std::move(attrs);
  op.outputs = {{"output", "out", rank, rank}};
  op.types = {row(Feature::pro_int, i8, i8, i32, i32),         row(Feature::int4, i8, i4, i32, i32),
              row(Feature::int16, i16, i8, i48, i48),          row(Feature::fp8e4m3, f8e4m3, f8e4m3, f16, f16),
              row(Feature::fp8e5m2, f8e5m2, f8e5m2, f16, f16), row(Feature::pro_fp, f16, f16, f16, f16),
              row(Feature::pro_fp, f16, f16, f16, f32),        row(Feature::pro_fp, f32, f32, f32, f32),
              row(Feature::bf16, bf16, bf16, bf16, f32)};
  op.bounds = sums_of_products;
  op.accumulates = true;
  return op;
}

Check check_convolution_operands(const View& view, std::int64_t weight_inputs, std::int64_t out_channels) {
  const std::string_view op = view.node().op.base();
  if (Check c = check_zero_point(view, 3, "input-zp", view.in(0).dtype)) return c;
  if (Check c = check_zero_point(view, 4, "weight-zp", view.in(1).dtype)) return c;
  const std::int64_t channels = view.in(0).shape.size(view.in(0).rank() - 1);
  if (channels != weight_inputs)
    return broken(fmt::format("{}.channels", op), "the input has {} channels, the weight takes {}", channels,
                  weight_inputs);
  const std::int64_t biases = view.in(2).shape.elements();
  if (biases != out_channels && biases != 1)
    return broken(fmt::format("{}.bias-size", op), "the bias has {} elements, {} or 1 are needed", biases,
                  out_channels);
  return std::nullopt;
}

namespace {
// Without the size of what is slid over.
Slide slide_along(const View& view, std::size_t i, std::int64_t kernel) {
  return {.kernel = kernel,
          .before = item(view, "pad", 2 * i, 0),
          .after = item(view, "pad", 2 * i + 1, 0),
          .stride = item(view, "stride", i, 1),
          .dilation = item(view, "dilation", i, 1)};
}
}  // namespace

std::vector<Slide> convolution_slides(const View& view, std::span<const std::int64_t> kernel) {
  std::vector<Slide> slides;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    slides.push_back(slide_along(view, i, kernel[i]));
    slides.back().size = view.in(0).shape.size(1 + static_cast<int>(i));
  }
  return slides;
}

std::vector<Dim> convolution_sizes(const View& view, std::span<const std::int64_t> kernel) {
  std::vector<Dim> sizes;
  for (std::size_t i = 0; i < kernel.size(); ++i)
    sizes.push_back(positions(view.in(0).shape[1 + static_cast<int>(i)], slide_along(view, i, kernel[i])));
  return sizes;
}

Check check_convolution_slides(const View& view, std::span<const std::int64_t> kernel) {
  if (Check c = check_length(view, "pad", 2 * kernel.size())) return c;
  if (Check c = check_length(view, "stride", kernel.size())) return c;
  if (Check c = check_length(view, "dilation", kernel.size())) return c;
  return check_slides(view, convolution_slides(view, kernel));
}

std::vector<TensorType> convolution_output(const View& view, std::span<const Dim> sizes, std::int64_t channels) {
  std::vector<Dim> dims{view.in(0).shape[0]};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  dims.push_back(channels);
  Shape shape(std::move(dims));
  return {{view.in(2).dtype, std::move(shape), std::nullopt}};
}

Result<ConvolutionRun> start_convolution(const Run& run, std::int64_t products_per_sum) {
  // |input - zp| < 2^15 and |weight - zp| < 2^8, or both < 2^8: sums of 2^29 products stay below 2^53.
  if (products_per_sum > (std::int64_t{1} << 29))
    return error("run.too-large", fmt::format("{}: a sum of {} products", run.view.node().op.base(), products_per_sum));
  return ConvolutionRun{as_doubles(run.in[0], first_as_double(run.in[3])),
                        as_doubles(run.in[1], first_as_double(run.in[4])), as_doubles(run.in[2])};
}

bool ConvolutionRun::store(const MutableTensorView& out, std::int64_t first, std::span<double> sums) const {
  bool fits = true;
  if (!is_float(out.type.dtype)) {
    const IntegerRange range = range_of(out.type.dtype);
    for (double sum : sums)
      fits = fits && sum >= static_cast<double>(range.lowest) && sum <= static_cast<double>(range.highest);
  }
  if (bias.size() == 1)
    for (double& sum : sums) sum += bias[0];
  else
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i];
  return store_doubles(out, first, sums) && fits;
}

Status accumulator_overflow(const Run& run) {
  return unpredictable(run, fmt::format("a sum does not fit the accumulator's {}", name_of(run.out[0].type.dtype)));
}

}  // namespace tosaic::tosa
