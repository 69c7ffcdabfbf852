// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels (tosaic.grouped_conv2d), directly: of narrow groups, whose products are too few
// for the tiles of matrix products. An invocation makes four channels of some neighbouring pixels of a line, which
// share weights and, where their windows overlap, what they read. Neighbouring invocations make a pixel's channels, one
// group after the other, so that what they read and write lies together.
#include <algorithm>
#include <map>

#include "ops/definitions/extension.h"
#include "shaders/axes.h"
#include "shaders/convolution_groups.h"
#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t fewest_channels = 16;  // of a group, in and out, that tiles of products are for
constexpr std::int64_t most_columns = 8;      // of a kernel: they are written out
constexpr std::int64_t most_unrolled_depth = 2;
constexpr int most_pixels = 4;
// Below it, more invocations of a GPU are worth more than what pixels share.
constexpr std::int64_t enough_invocations = 1 << 15;

int pixels_at_once(const Work& work, const Dim& quads, const Dim& width) {
  int pixels = most_pixels;
  while (pixels > 1 &&
         (pixels > most(width) || (work.tier != TierId::cpu && most(quads) / pixels < enough_invocations)))
    pixels /= 2;
  return pixels;
}

// Four neighbours, at once where the tier reads so.
class QuadReads {
 public:
  QuadReads(Kernel& s, DType type) : s_(s), type_(type), whole_(!reads_texels(s.work().tier) || has_quads(type)) {}
  void bind(ValueId v) { buffer_ = s_.input(v, whole_); }
  void bind(Bytes constant) { buffer_ = s_.constant(type_, std::move(constant), whole_); }
  Quad at(Value quad) {
    if (whole_) return s_.load_quad(buffer_, quad);
    Quad four;
    for (int q = 0; q < 4; ++q) four[static_cast<std::size_t>(q)] = s_.load(buffer_, quad * 4 + q);
    return four;
  }

 private:
  Kernel& s_;
  const DType type_;
  const bool whole_;
  Buffer buffer_;
};

// Reads what an invocation multiplies: of one pixel four channels, and what four results have of them. By numbers, or
// by words of four 8-bit quantised values.
class Factors {
 public:
  // `depth`: quads of channels of a group.
  Factors(Kernel& s, const tosa::View& view, bool dots)
      : s_(s),
        dots_(dots),
        depth_(view.in(1).shape.size(3) / 4),
        quads_(s.param(view.in(1).shape.size(0) / 4)),
        input_zero_(zero_point(s, view, 0, 3)),
        weight_zero_(dots ? std::nullopt : zero_point(s, view, 1, 4)),
        input_(s, view.in(0).dtype),
        weights_(s, dots ? DType::i32 : view.in(1).dtype) {
    const ValueId image = view.node().inputs[0];
    const std::int64_t columns = view.in(1).shape.size(0), taps = view.in(1).shape.size(1) * view.in(1).shape.size(2);
    if (dots)
      words_ = s.input_words(image, false);
    else
      input_.bind(image);
    weights_.bind(packed_weights(view.constant(1), dots ? DType::i32 : view.in(1).dtype, columns, taps,
                                 dots ? depth_ : depth_ * 4, 1));
  }

  std::int64_t depth() const { return depth_; }
  Value quads() const { return quads_; }
  // What a sum begins with.
  Vector begin(const tosa::View& view, Value quad) {
    if (!dots_) return s_.splat(is_float(view.out().dtype) ? s_.real(0) : s_.integer(0));
    const FirstSums first = first_sums(s_, view.constant(1), view.in(1).shape.size(0), *input_zero_);
    return s_.vector(s_.load_quad(first.of_weights, quad)) * first.factor;
  }

  // Zeros outside.
  Quad read(Value quad, Value inside) {
    const Value at = s_.select(inside, quad, s_.integer(0));
    Quad four;
    if (dots_) {
      four[0] = s_.select(inside, s_.load(words_, at), (*input_zero_ & 0xff) * 0x01010101);
      return four;
    }
    four = input_.at(at);
    for (Value& x : four)
      x = s_.select(inside, centred(x, input_zero_), x.kind == Kind::real ? s_.real(0) : s_.integer(0));
    return four;
  }

  // The quads of weights that a tap's four channels are multiplied by: quad k along the depth, of all taps.
  std::vector<Vector> weights(Value k, Value quad) {
    std::vector<Vector> rows;
    for (int c = 0; c < (dots_ ? 1 : 4); ++c) {
      Quad four = weights_.at((dots_ ? k : k * 4 + c) * quads_ + quad);
      for (Value& w : four) w = centred(w, weight_zero_);
      rows.push_back(s_.vector(four));
    }
    return rows;
  }

  Vector add_products(Vector sum, const std::vector<Vector>& weights, const Quad& x) {
    if (dots_) {
      Quad products;
      for (Word q = 0; q < 4; ++q) products[q] = s_.dot_of_int8(lane(weights[0], q), x[0]);
      return sum + s_.vector(products);
    }
    for (std::size_t c = 0; c < 4; ++c) sum = sum + weights[c] * x[c];
    return sum;
  }

 private:
  Kernel& s_;
  const bool dots_;
  const std::int64_t depth_;
  const Value quads_;
  const std::optional<Value> input_zero_, weight_zero_;
  QuadReads input_, weights_;
  Buffer words_;
};

void store(Kernel& s, const Finish& end, const Dim& channels, Value quad, const Quad& all) {
  if (!reads_texels(s.work().tier)) return end.store_finished(s, quad, end.finished_quad(s, quad, all));
  if (end.has_quads(s.graph(), channels)) return end.store_from(s, quad * 4, all);
  s.repeat(4, [&](int q) { end.store(s, quad * 4 + q, all[static_cast<std::size_t>(q)]); });
}

MadeList grouped_convolution(const Work& work, const Node& node, const Finish& end, bool dots) {
  const tosa::View view(work.graph, node);
  const Shape &weight = view.in(1).shape, &out = view.out().shape;
  const std::int64_t columns = weight.size(2), stride = view.ints("stride")[1], dilation = view.ints("dilation")[1],
                     all_quads = weight.size(0) / 4, of_group = all_quads / extension::grouped_conv2d::groups(view);
  const Dim lines = out[0] * out[1];
  const int pixels = pixels_at_once(work, lines * out[2] * all_quads, out[2]);
  const Dim blocks = ceil_div(out[2], pixels);
  Kernel s(work, "grouped_conv2d", lines * blocks * all_quads);
  Factors factors(s, view, dots);
  const Axis y = axis_of(s, view, 0, weight.size(1), true);
  const Value width = s.param(view.in(0).shape[2]), before = s.param(view.ints("pad")[2]), out_width = s.param(out[2]);
  const Value pitch = s.param(view.in(0).shape.size(3) / 4), across = s.param(blocks);

  const Value quad = s.index() % factors.quads(), block = s.index() / factors.quads();
  const Value first = block % across * pixels, line = block / across;
  const Value begin_y = line % y.out * y.stride - y.before, begin_x = first * stride - before;
  const Value image = line / y.out, depth = s.integer(factors.depth());
  const Value own = quad / s.integer(of_group) * depth;  // the group's first quad of channels
  std::vector<VectorVariable> sums;
  const Vector zero = factors.begin(view, quad);
  for (int p = 0; p < pixels; ++p) sums.push_back(s.variable(zero));
  s.loop(s.integer(0), y.kernel, s.integer(1), [&](Value tap) {
    const Value at_y = begin_y + tap * y.dilation, inside_y = below_unsigned(at_y, y.size),
                row = (image * y.size + at_y) * width;
    s.loop(
        s.integer(0), depth, s.integer(1),
        [&](Value k) {
          std::map<std::int64_t, Quad> read;  // by how far from the first pixel's window
          for (std::int64_t p = 0; p < pixels; ++p)
            for (std::int64_t c = 0; c < columns; ++c) {
              const std::int64_t offset = p * stride + c * dilation;
              if (read.contains(offset)) continue;
              const Value x = begin_x + offset, inside = inside_y & below_unsigned(x, width);
              read[offset] = factors.read((row + x) * pitch + own + k, inside);
            }
          std::vector<Vector> made;
          for (const VectorVariable& sum : sums) made.push_back(sum.get());
          for (std::int64_t c = 0; c < columns; ++c) {
            const std::vector<Vector> weights = factors.weights((tap * columns + c) * depth + k, quad);
            for (std::int64_t p = 0; p < pixels; ++p) {
              Vector& sum = made[static_cast<std::size_t>(p)];
              sum = factors.add_products(sum, weights, read[p * stride + c * dilation]);
            }
          }
          for (std::size_t p = 0; p < sums.size(); ++p) sums[p].set(made[p]);
        },
        factors.depth() <= most_unrolled_depth ? Unrolling::all : Unrolling::free);
  });
  const Quad bias = bias_quad_at(s, view, quad);
  s.repeat(pixels, [&](int p) {
    const auto finish = [&] {
      const Vector sum = sums[static_cast<std::size_t>(p)].get();
      Quad all;
      for (Word q = 0; q < 4; ++q) all[q] = lane(sum, q) + bias[q];
      store(s, end, out[3], (line * out_width + first + p) * factors.quads() + quad, all);
    };
    if (p == 0)
      finish();
    else
      s.when(first + p < out_width, finish);
  });
  return one(s);
}

}  // namespace

bool takes_wide_groups(const tosa::View& view) {
  const ConvolutionGroups groups(view);
  return has_tiles(view) && groups.channels >= fewest_channels && groups.columns >= fewest_channels &&
         groups.columns % 4 == 0;
}
bool takes_wide_dot_groups(const tosa::View& view) {
  return takes_dot_convolution(view) && takes_wide_groups(view) && ConvolutionGroups(view).channels % 4 == 0;
}
bool takes_matrix_groups(const tosa::View& view) { return takes_matrix_convolution(view) && takes_wide_groups(view); }
bool takes_int8_matrix_groups(const tosa::View& view) {
  return takes_int8_matrix_convolution(view) && takes_wide_dot_groups(view);
}

bool takes_quad_groups(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return has_tiles(view) && weight.size(3) % 4 == 0 &&
         weight.size(0) % (4 * extension::grouped_conv2d::groups(view)) == 0 && weight.size(2) <= most_columns;
}
bool takes_dot_groups(const tosa::View& view) { return takes_dot_convolution(view) && takes_quad_groups(view); }

MadeList make_quad_groups(const Work& work, const Node& node, const Finish& end) {
  return grouped_convolution(work, node, end, false);
}
MadeList make_dot_groups(const Work& work, const Node& node, const Finish& end) {
  return grouped_convolution(work, node, end, true);
}

}  // namespace tosaic::shaders
