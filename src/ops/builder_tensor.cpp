// SPDX-License-Identifier: Apache-2.0
// Convolution, matmul, pooling and resize, float and quantised.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "ops/bias_room.h"
#include "ops/builder.h"
#include "ops/definitions/rest.h"
#include "ops/half_precision.h"

namespace tosaic {
namespace {

// The accumulator that TOSA offers for operands of this dtype, and the output dtype before rescaling.
DType accumulator_of(DType x) {
  switch (x) {
    case DType::i8: return DType::i32;
    case DType::i16: return DType::i48;
    case DType::f16:
    case DType::bf16: return DType::f32;
    case DType::f8e4m3:
    case DType::f8e5m2: return DType::f16;
    default: return x;
  }
}
DType conv_result_of(DType x) { return is_float(x) ? (storage_size(x) == 1 ? DType::f16 : x) : accumulator_of(x); }

// A quantised bias counts the accumulator's steps. One that counts others (PT2E gives a bias that a loop's body takes a
// scale and a zero point of its own) is the reals that it stands for.
std::optional<Val> bias_in_steps(Builder& b, std::optional<Val> bias, const TensorType& x, const TensorType& weight) {
  if (!bias || !bias->type().quantised() || !x.quantised() || !weight.quantised()) return bias;
  const Scales &own = *bias->type().scales, &factors = *weight.scales;
  const auto at = [](const std::vector<double>& list, std::size_t c) { return list[list.size() == 1 ? 0 : c]; };
  bool same = std::ranges::all_of(own.zero_point, [](std::int64_t z) { return z == 0; });
  for (std::size_t c = 0; c < std::max(own.scale.size(), factors.scale.size()); ++c)
    same &= std::fabs(at(own.scale, c) / (x.scales->scale[0] * at(factors.scale, c)) - 1) < 1e-4;
  if (same) return bias;
  if (!bias->is_constant())
    b.refuse("quantise.bias-type",
             fmt::format("bias {} must be constant, or count the steps of the products", to_string(bias->type())));
  std::vector<double> reals(static_cast<std::size_t>(bias->shape().elements()));
  for (std::size_t c = 0; c < reals.size(); ++c)
    reals[c] = at(own.scale, c) * (element_as_double(bias->dtype(), b.graph()[bias->id()].constant.data(), c) -
                                   static_cast<double>(own.zero_point[own.zero_point.size() == 1 ? 0 : c]));
  return b.constant({DType::f32, bias->shape(), {}}, constant_bytes(DType::f32, reals));
}

// A bias beyond what the accumulator holds in addition to the products.
Val with_room_for(Builder& b, const Val& bias, Val weight, const TensorType& x) {
  if (!x.quantised() || !weight.type().quantised() || bias.type().quantised() || !bias.is_constant()) return weight;
  const std::vector<double> growth = growth_for_biases({bias.type(), b.graph()[bias.id()].constant}, x.scales->scale[0],
                                                       x.dtype, *weight.type().scales);
  if (std::all_of(growth.begin(), growth.end(), [](double g) { return g == 1; })) return weight;
  if (!weight.is_constant())
    b.refuse("quantise.bias-range", "the bias does not fit an accumulator whose scale is that of two computed tensors");
  const Tensor grown = with_larger_steps({weight.type(), b.graph()[weight.id()].constant}, growth);
  return b.constant(grown.type, grown.data);
}

}  // namespace

Val Builder::accumulated(Val accumulator, const TensorType& x, const TensorType& weight) {
  if (!x.quantised() || !weight.quantised()) return accumulator;
  Scales s{{}, {}};
  for (double w : weight.scales->scale) {
    s.scale.push_back(x.scales->scale[0] * w);
    s.zero_point.push_back(0);
  }
  if (s.scale.size() > 1) s.axis = accumulator.rank() - 1;
  accumulator = retyped(accumulator, accumulator.type().with(s));
  const auto& wanted = call().wanted;
  if (!wanted || !wanted->quantised()) return accumulator;
  return rescale(accumulator, wanted->with(accumulator.shape()));
}

// The bias as TOSA's accumulator type: given reals are divided by the accumulator's scales.
Val Builder::bias_for(std::optional<Val> bias, const TensorType& x, const TensorType& weight, std::int64_t channels) {
  const DType type = conv_result_of(x.dtype);
  if (!bias) return filled(0, type, Shape{1});
  if (!x.quantised()) return *bias;
  if (bias->type().quantised()) {  // already integers at the accumulator's scale
    if (bias->dtype() == type) return *bias;
    if (bias->is_constant())
      return constant({type, bias->shape(), {}}, converted({bias->type(), graph_[bias->id()].constant.data()}, type));
    refuse("quantise.bias-type", fmt::format("bias {} must be constant", to_string(bias->type())));
  }
  if (!bias->is_constant())
    refuse("quantise.bias-type", fmt::format("bias {} must be constant or quantised", to_string(bias->type())));
  if (!weight.quantised())
    refuse("quantise.weight-type", fmt::format("weight {} has no scale for the bias", to_string(weight)));
  std::vector<std::int64_t> quantised_values;
  const auto range = range_of(type);
  for (std::int64_t c = 0; c < channels; ++c) {
    auto i = static_cast<std::size_t>(c);
    const auto& scales = weight.scales->scale;
    double unit = x.scales->scale[0] * scales[scales.size() == 1 ? 0 : i];
    double real =
        element_as_double(bias->dtype(), graph_[bias->id()].constant.data(), bias->shape().elements() == 1 ? 0 : i);
    double code = std::nearbyint(real / unit);
    quantised_values.push_back(static_cast<std::int64_t>(
        std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest))));
  }
  return integers(quantised_values, type, Shape{channels});
}

// Shared by all convolutions: pad what TOSA cannot, trim what the stride would not reach, build the node.
Val Builder::convolution(Operator op, Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                         std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation,
                         const std::vector<std::int64_t>& kernel, std::int64_t channels) {
  const int spatial = static_cast<int>(kernel.size());
  for (const auto* list : {&pad, &stride, &dilation})  // damaged programs have any
    for (std::int64_t n : *list)
      if (n > INT32_MAX || n < INT32_MIN)
        refuse("aten.convolution.arguments", fmt::format("a convolution with {}, which has more than 32 bits", n));
  for (int i = 0; i < spatial; ++i) {
    auto k = static_cast<std::size_t>(i);
    std::int64_t span = (kernel[k] - 1) * dilation[k] + 1;
    std::int64_t room = x.dim(1 + i) + pad[2 * k] + pad[2 * k + 1] - span;
    if (room < 0)
      refuse("aten.kernel-size", fmt::format("a kernel of {} does not fit the padded input of {}", span, room + span));
    if (spec_ && spec_->has(tosa::sizes_vary)) continue;  // how many are left would be another node at another size
    std::int64_t excess = room % stride[k];               // elements at the end that no window reaches
    std::int64_t from_pad = std::min(excess, std::max<std::int64_t>(pad[2 * k + 1], 0));
    pad[2 * k + 1] -= from_pad;
    if (excess > from_pad) x = slice_axis(x, 1 + i, 0, x.dim(1 + i) - (excess - from_pad));
  }
  bias = bias_in_steps(*this, bias, x.type(), weight.type());
  if (bias) weight = with_room_for(*this, *bias, weight, x.type());
  TensorType x_type = x.type(), w_type = weight.type();
  Attrs attrs{{"pad", std::move(pad)},
              {"stride", std::move(stride)},
              {"dilation", std::move(dilation)},
              {"acc_type", accumulator_of(x.dtype())},
              {"local_bound", false}};
  Val b = bias_for(bias, x_type, w_type, channels);
  Val result =
      typed(op, {x, weight, b, zero_point(x), zero_point(weight)}, std::move(attrs), conv_result_of(x.dtype()));
  return accumulated(result, x_type, w_type);
}

Val Builder::conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                    std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation) {
  return convolution(tosa::op::conv2d, x, weight, bias, std::move(pad), std::move(stride), std::move(dilation),
                     {weight.dim(1), weight.dim(2)}, weight.dim(0));
}

Val Builder::depthwise_conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                              std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation) {
  return convolution(tosa::op::depthwise_conv2d, x, weight, bias, std::move(pad), std::move(stride),
                     std::move(dilation), {weight.dim(0), weight.dim(1)}, weight.dim(2) * weight.dim(3));
}

Val Builder::conv3d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                    std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation) {
  return convolution(tosa::op::conv3d, x, weight, bias, std::move(pad), std::move(stride), std::move(dilation),
                     {weight.dim(1), weight.dim(2), weight.dim(3)}, weight.dim(0));
}

Val Builder::transpose_conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> out_pad,
                              std::vector<std::int64_t> stride) {
  bias = bias_in_steps(*this, bias, x.type(), weight.type());
  if (bias) weight = with_room_for(*this, *bias, weight, x.type());
  TensorType x_type = x.type(), w_type = weight.type();
  Val b = bias_for(bias, x_type, w_type, weight.dim(0));
  Val result = typed(tosa::op::transpose_conv2d, {x, weight, b, zero_point(x), zero_point(weight)},
                     {{"out_pad", std::move(out_pad)},
                      {"stride", std::move(stride)},
                      {"acc_type", accumulator_of(x.dtype())},
                      {"local_bound", false}},
                     conv_result_of(x.dtype()));
  return accumulated(result, x_type, w_type);
}

namespace {
// MATMUL of integers is for quantised values; PyTorch's keep their dtype and wrap. Each element is a sum of products.
Val integer_product(Val a, Val b) {
  Builder& builder = a.builder();
  const std::int64_t n = a.dim(0), h = a.dim(1), c = a.dim(2), w = b.dim(2);
  if (static_cast<double>(n) * static_cast<double>(h) * static_cast<double>(c) * static_cast<double>(w) > 1 << 28)
    builder.refuse("aten.too-large",
                   fmt::format("{} products of {} matrices of {}x{} and {}x{}", n, name_of(a.dtype()), h, c, c, w));
  const DType sum = a.dtype() == DType::i64 ? DType::i64 : DType::i32;
  Val products = builder.mul(builder.reshape(builder.cast(a, sum), {n, h, c, 1}),
                             builder.reshape(builder.cast(b, sum), {n, 1, c, w}));
  return builder.cast(builder.reduce(tosa::op::reduce_sum, products, {2}, false), a.dtype());
}
}  // namespace

Val Builder::matmul(Val a, Val b) {
  if (is_integer(a.dtype()) && !a.type().quantised()) return integer_product(a, b);
  if (const auto x = half_precision::f16_of(a), y = half_precision::f16_of(b); x && y && x->dtype() == y->dtype())
    return typed(tosa::op::matmul, {*x, *y, zero_point(*x), zero_point(*y)}, {}, DType::f32);
  TensorType a_type = a.type(), b_type = b.type();
  DType result = is_integer(a.dtype()) ? accumulator_of(a.dtype()) : a.dtype();
  const bool fp8 = storage_size(a.dtype()) == 1 && is_float(a.dtype());
  if (a.dtype() == DType::bf16) result = DType::f32;
  if (fp8) result = DType::f16;
  Val product = typed(tosa::op::matmul, {a, b, zero_point(a), zero_point(b)}, {}, result);
  if (a.dtype() == DType::bf16 || fp8) return cast(product, a.dtype());
  return accumulated(product, a_type, b_type);
}

Val Builder::max_pool2d(Val x, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                        std::vector<std::int64_t> pad) {
  Val result = tosa(tosa::op::max_pool2d, {x},
                    {{"kernel", std::move(kernel)},
                     {"stride", std::move(stride)},
                     {"pad", std::move(pad)},
                     {"nan_mode", std::string("propagate")}});
  return retyped(result, result.type().with(x.type().scales));
}

Val Builder::avg_pool2d(Val x, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                        std::vector<std::int64_t> pad) {
  DType accumulator = is_float(x.dtype()) ? accumulator_of(x.dtype()) : DType::i32;
  Val zero = zero_point(x);
  Val result = tosa(tosa::op::avg_pool2d, {x, zero, zero},
                    {{"kernel", std::move(kernel)},
                     {"stride", std::move(stride)},
                     {"pad", std::move(pad)},
                     {"acc_type", accumulator}});
  return retyped(result, result.type().with(x.type().scales));
}

Val Builder::resize(Val x, std::vector<std::int64_t> scale, std::vector<std::int64_t> offset,
                    std::vector<std::int64_t> border, const std::string& mode) {
  TensorType type = x.type();
  const bool weighted = mode == "bilinear" && is_integer(x.dtype());
  const double weight = static_cast<double>(scale[0] * scale[2]);  // bilinear integers come out this many times larger
  DType result_type = weighted ? accumulator_of(x.dtype()) : x.dtype();
  Val result =
      typed(tosa::op::resize,
            {x, shape_constant(std::move(scale)), shape_constant(std::move(offset)), shape_constant(std::move(border))},
            {{"mode", mode}}, result_type);
  if (!weighted) return retyped(result, result.type().with(type.scales));
  // The weights of a point add up to `weight`, so quantised values keep their zero point when divided by it.
  result = retyped(result, result.type().with(Scales{{1.0 / weight}, {0}}));
  result = rescale(result, {type.dtype, result.shape(), Scales{{1.0}, {0}}});
  return retyped(result, type.with(result.shape()));
}

Val Builder::gather(Val values, Val indices) {
  if (const auto half = half_precision::f16_of(values)) return cast(gather(*half, indices), values.dtype());
  Val result = tosa(tosa::op::gather, {values, indices});
  return retyped(result, result.type().with(values.type().scales));
}

}  // namespace tosaic
