// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, four channels at a time: an invocation reads all taps of a pixel before it adds them up.
#include "shaders/axes.h"
#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t most_taps = 25;     // that are written out
constexpr std::int64_t longest_line = 16;  // of f16, which are written out line by line where there are more taps

}  // namespace

bool has_quad_taps(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return has_narrow_sums(view) && weight.size(3) == 1 && weight.size(2) % 4 == 0 &&
         (weight.size(0) * weight.size(1) <= most_taps ||
          (view.in(0).dtype == DType::f16 && weight.size(1) <= longest_line));
}

MadeList make_quad_depthwise(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &weight = view.in(1).shape, &out = view.out().shape;
  Kernel s(work, "depthwise_conv2d", floor_div(elements_of(out), 4));
  const std::vector<Axis> axes{axis_of(s, view, 0, weight.size(0)), axis_of(s, view, 1, weight.size(1))};
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Buffer input = s.input(node.inputs[0], true), weights = s.input(node.inputs[1], true);
  const Value quads = s.param(out.size(3) / 4), quad = s.index() % quads;
  const Pixel pixel = pixel_at(s.index() / quads, axes);
  const bool real = is_float(view.out().dtype);
  const Value zero = real ? s.real(0) : s.integer(0);

  struct Tap {
    RawQuad x, w;
    Value inside;
  };
  std::vector<Tap> taps;
  const auto read_line = [&](Value ky) {
    const Value y = pixel.position[0] * axes[0].stride - axes[0].before + axes[0].dilation * ky;
    for (std::int64_t kx = 0; kx < weight.size(1); ++kx) {
      const Value x = pixel.position[1] * axes[1].stride - axes[1].before + axes[1].dilation * kx;
      const Value inside = below_unsigned(y, axes[0].size) & below_unsigned(x, axes[1].size);
      const Value at = ((pixel.image * axes[0].size + y) * axes[1].size + x) * quads + quad;
      taps.push_back({s.load_raw(input, s.select(inside, at, s.integer(0))),
                      s.load_raw(weights, quads * (ky * weight.size(1) + kx) + quad), inside});
    }
  };
  std::array<std::optional<Value>, 4> sums;
  const auto add_taps = [&] {
    for (const Tap& tap : taps) {
      const Quad x = s.numbers(tap.x, view.in(0).dtype), w = s.numbers(tap.w, view.in(1).dtype);
      for (std::size_t q = 0; q < 4; ++q) {
        const Value from = s.select(tap.inside, centred(x[q], in_zp), zero), by = centred(w[q], weight_zp);
        sums[q] = sums[q] ? add_product(*sums[q], from, by) : from * by;
      }
    }
    taps.clear();
  };
  if (weight.size(0) * weight.size(1) <= most_taps) {
    for (std::int64_t ky = 0; ky < weight.size(0); ++ky) read_line(s.integer(ky));
    add_taps();
  } else {
    std::vector<Variable> kept;
    for (int q = 0; q < 4; ++q) kept.push_back(s.variable(zero));
    s.loop(s.integer(0), s.integer(weight.size(0)), s.integer(1), [&](Value ky) {
      for (std::size_t q = 0; q < 4; ++q) sums[q] = kept[q].get();
      read_line(ky);
      add_taps();
      for (std::size_t q = 0; q < 4; ++q) kept[q].set(*sums[q]);
    });
    for (std::size_t q = 0; q < 4; ++q) sums[q] = kept[q].get();
  }
  const Quad bias = bias_quad_at(s, view, quad);
  Quad all;
  for (std::size_t q = 0; q < 4; ++q) all[q] = *sums[q] + bias[q];
  end.store_finished(s, s.index(), end.finished_quad(s, s.index(), all));
  return one(s);
}

}  // namespace tosaic::shaders
