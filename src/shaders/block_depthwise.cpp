// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions for CPU devices: an invocation makes four channels of four neighbouring pixels, so that a
// weight is read once for all of them. Sums of 8-bit numbers are floats, which are exact below 2^24.
#include "shaders/kernels.h"

namespace tosaic::shaders {
namespace {

constexpr int pixels = 4;
constexpr std::int64_t most_taps = (1 << 24) / (255 * 255);

std::int64_t zero_point(const tosa::View& view, std::size_t operand) {
  return is_float(view.in(0).dtype) ? 0 : (*view.constant_integers(operand))[0];
}

// One spatial axis, as parameters.
struct Axis {
  Value size, kernel, before, stride, dilation, out;
};
Axis axis_of(Kernel& s, const tosa::View& view, std::size_t i) {
  const int dim = static_cast<int>(i) + 1;
  return {s.param(view.in(0).shape[dim]),    s.param(view.in(1).shape.size(static_cast<int>(i))),
          s.param(view.ints("pad")[2 * i]),  s.param(view.ints("stride")[i]),
          s.param(view.ints("dilation")[i]), s.param(view.out().shape[dim])};
}

}  // namespace

bool takes_block_depthwise(const tosa::View& view) {
  const DType in = view.in(0).dtype, weight = view.in(1).dtype, out = view.out().dtype;
  const Shape& kernel = view.in(1).shape;
  const bool floats = in == DType::f32 && weight == DType::f32 && out == DType::f32;
  const bool integers = in == DType::i8 && (weight == DType::i8 || weight == DType::i4) && out == DType::i32 &&
                        kernel.size(0) * kernel.size(1) <= most_taps;
  return (floats || integers) && kernel.size(3) == 1 && kernel.size(2) % 4 == 0;
}

MadeList make_block_depthwise(const Work& work, const Node& node, const Finish& end) {
  if (!end.has_quads(work.graph)) return std::nullopt;
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const Dim blocks = ceil_div(out[2], pixels);
  const std::int64_t channel_quads = out.size(3) / 4;
  Kernel s(work, "depthwise_conv2d", out[0] * out[1] * blocks * channel_quads);
  const Value quads = s.param(channel_quads), across = s.param(blocks);
  const Axis y = axis_of(s, view, 0), x = axis_of(s, view, 1);
  const bool integers = view.in(0).dtype != DType::f32;
  std::vector<Value> zero_points;
  if (integers) zero_points = {s.param(zero_point(view, 3)), s.param(zero_point(view, 4))};
  const auto centred = [&](Value number, std::size_t operand) {
    return integers ? s.signed_to_real(number - zero_points[operand]) : number;
  };
  const Buffer input = s.input(node.inputs[0], true), weights = s.input(node.inputs[1], true);
  const Value quad = s.index() % quads, block = s.index() / quads;
  const Value first = block % across * pixels, line = block / across;
  const Value out_y = line % y.out, image = line / y.out;
  std::vector<std::vector<Variable>> sums(pixels);
  for (auto& pixel : sums)
    for (int c = 0; c < 4; ++c) pixel.push_back(s.variable(s.real(0)));
  const Value zero = s.integer(0), one_more = s.integer(1);
  s.loop(zero, y.kernel, one_more, [&](Value ky) {
    const Value iy = out_y * y.stride - y.before + ky * y.dilation;
    const Value inside_y = below_unsigned(iy, y.size), row = (image * y.size + iy) * x.size;
    s.loop(zero, x.kernel, one_more, [&](Value kx) {
      Quad weight = s.load_quad(weights, (ky * x.kernel + kx) * quads + quad);
      for (Value& v : weight) v = centred(v, 1);
      const Value from = first * x.stride - x.before + kx * x.dilation;
      for (int p = 0; p < pixels; ++p) {
        const Value ix = p == 0 ? from : from + x.stride * p;
        const Value inside = inside_y & below_unsigned(ix, x.size);
        const Quad elements = s.load_quad(input, s.select(inside, (row + ix) * quads + quad, zero));
        for (std::size_t c = 0; c < 4; ++c) {
          const Variable& sum = sums[static_cast<std::size_t>(p)][c];
          sum.set(add_product(sum.get(), s.select(inside, centred(elements[c], 0), s.real(0)), weight[c]));
        }
      }
    });
  });
  const ValueId bias = node.inputs[2];
  const bool shared = view.in(2).shape.elements() == 1;
  const Buffer bias_buffer = s.input(bias, !shared);
  Quad added;
  if (shared)
    added.fill(s.load(bias_buffer, zero));
  else
    added = s.load_quad(bias_buffer, quad);
  s.repeat(pixels, [&](int p) {
    const Value at = first + p;
    s.when(at < x.out, [&] {
      Quad all;
      for (std::size_t c = 0; c < 4; ++c) {
        const Value sum = sums[static_cast<std::size_t>(p)][c].get();
        all[c] = (integers ? s.real_to_signed(sum) : sum) + added[c];
      }
      end.store_from(s, ((line * x.out + at) * quads + quad) * 4, all);
    });
  });
  return one(s);
}

}  // namespace tosaic::shaders
