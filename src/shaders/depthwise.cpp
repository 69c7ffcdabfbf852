// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, four channels at a time: an invocation reads all taps of a pixel before it adds them up.
#include "shaders/axes.h"
#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t most_taps = 25;  // that an invocation reads before it adds them up
// Windows of more taps: invocations of a group make a line each, so that all lines are read at once.
constexpr std::int64_t longest_line = 16, most_lines = 8, quads_of_group = 32;

bool is_by_lines(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return weight.size(0) * weight.size(1) > most_taps;
}

// The sums of a quad of channels, of some lines of its window.
class Taps {
 public:
  Taps(Kernel& s, const tosa::View& view, Value index)
      : s_(s),
        view_(view),
        axes_{axis_of(s, view, 0, view.in(1).shape.size(0)), axis_of(s, view, 1, view.in(1).shape.size(1))},
        in_zp_(zero_point(s, view, 0, 3)),
        weight_zp_(zero_point(s, view, 1, 4)),
        input_(s.input(view.node().inputs[0], true)),
        weights_(s.input(view.node().inputs[1], true)),
        quads_(s.param(view.out().shape.size(3) / 4)),
        quad_(index % quads_),
        pixel_(pixel_at(index / quads_, axes_)) {}

  Value quad() const { return quad_; }

  void read_line(Value ky) {
    const std::int64_t width = view_.in(1).shape.size(1);
    const Value y = pixel_.position[0] * axes_[0].stride - axes_[0].before + axes_[0].dilation * ky;
    for (std::int64_t kx = 0; kx < width; ++kx) {
      const Value x = pixel_.position[1] * axes_[1].stride - axes_[1].before + axes_[1].dilation * kx;
      const Value inside = below_unsigned(y, axes_[0].size) & below_unsigned(x, axes_[1].size);
      const Value at = ((pixel_.image * axes_[0].size + y) * axes_[1].size + x) * quads_ + quad_;
      taps_.push_back({s_.load_raw(input_, s_.select(inside, at, s_.integer(0))),
                       s_.load_raw(weights_, quads_ * (ky * width + kx) + quad_), inside});
    }
  }
  Quad sums() {
    const Value zero = is_float(view_.out().dtype) ? s_.real(0) : s_.integer(0);
    std::array<std::optional<Value>, 4> sums;
    for (const Tap& tap : taps_) {
      const Quad x = s_.numbers(tap.x, view_.in(0).dtype), w = s_.numbers(tap.w, view_.in(1).dtype);
      for (std::size_t q = 0; q < 4; ++q) {
        const Value from = s_.select(tap.inside, centred(x[q], in_zp_), zero), by = centred(w[q], weight_zp_);
        sums[q] = sums[q] ? add_product(*sums[q], from, by) : from * by;
      }
    }
    return {*sums[0], *sums[1], *sums[2], *sums[3]};
  }

 private:
  struct Tap {
    RawQuad x, w;
    Value inside;
  };
  Kernel& s_;
  const tosa::View& view_;
  const std::vector<Axis> axes_;
  const std::optional<Value> in_zp_, weight_zp_;
  const Buffer input_, weights_;
  const Value quads_, quad_;
  const Pixel pixel_;
  std::vector<Tap> taps_;
};

MadeList depthwise_by_lines(const Work& work, const tosa::View& view, const Finish& end) {
  const std::int64_t lines = view.in(1).shape.size(0);
  const Dim all = floor_div(elements_of(view.out().shape), 4);
  const auto invocations = static_cast<std::uint32_t>(quads_of_group * lines);
  Kernel s(work, "depthwise_conv2d", Groups{ceil_div(all, quads_of_group), invocations});
  const Value line = s.local() / s.integer(quads_of_group), own = s.local() % s.integer(quads_of_group);
  const Value which = s.group() * quads_of_group + own, exists = which < s.param(all),
              index = s.select(exists, which, s.integer(0));
  Taps taps(s, view, index);
  taps.read_line(line);
  const Shared memory = s.shared(is_float(view.out().dtype) ? Kind::real : Kind::integer, invocations);
  s.store(memory, s.local(), s.vector(taps.sums()));
  s.barrier();
  s.when((line == 0) & exists, [&] {
    Quad sums = bias_quad_at(s, view, taps.quad());
    for (std::int64_t l = 0; l < lines; ++l) {
      const Vector part = s.load(memory, own + l * quads_of_group);
      for (Word q = 0; q < 4; ++q) sums[q] = sums[q] + lane(part, q);
    }
    end.store_finished(s, index, end.finished_quad(s, index, sums));
  });
  return one(s);
}

}  // namespace

bool has_quad_taps(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return has_narrow_sums(view) && weight.size(3) == 1 && weight.size(2) % 4 == 0 &&
         (!is_by_lines(view) || (weight.size(0) <= most_lines && weight.size(1) <= longest_line));
}

MadeList make_quad_depthwise(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  if (is_by_lines(view)) return depthwise_by_lines(work, view, end);
  Kernel s(work, "depthwise_conv2d", floor_div(elements_of(view.out().shape), 4));
  Taps taps(s, view, s.index());
  for (std::int64_t ky = 0; ky < view.in(1).shape.size(0); ++ky) taps.read_line(s.integer(ky));
  const Quad sums = taps.sums(), bias = bias_quad_at(s, view, taps.quad());
  Quad all;
  for (std::size_t q = 0; q < 4; ++q) all[q] = sums[q] + bias[q];
  end.store_finished(s, s.index(), end.finished_quad(s, s.index(), all));
  return one(s);
}

}  // namespace tosaic::shaders
