// SPDX-License-Identifier: Apache-2.0
// Convolutions, directly: an invocation makes one output pixel's element of a channel, or of four; of large outputs
// four channels of four pixels, for which it reads each weight and each input once. Of groups of channels, too.
#include <algorithm>
#include <bit>
#include <cstring>

#include "shaders/axes.h"

namespace tosaic::shaders {
namespace {

std::int64_t at(const tosa::View& view, std::string_view list, std::size_t i) { return view.ints(list)[i]; }

// Calls body(position) for each tap that lies inside the input.
void for_taps(Kernel& s, const Axis& a, Value out, const std::function<void(Value tap, Value position)>& body) {
  const Value begin = out * a.stride - a.before;
  s.loop(s.integer(0), a.kernel, s.integer(1), [&](Value tap) {
    const Value position = begin + tap * a.dilation;
    // As unsigned, a negative position is a large one.
    s.when(below_unsigned(position, a.size), [&] { body(tap, position); });
  });
}

// [rows, columns] -> [columns, rows]
Bytes transposed(const Bytes& matrix, std::size_t rows, std::size_t columns, std::size_t size) {
  std::byte* to = nullptr;
  Bytes result = Bytes::fresh(rows * columns * size, to);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(to + (c * rows + r) * size, matrix.data() + (r * columns + c) * size, size);
  return result;
}

// Weights [OC, K]: constants are laid [K, OC], so that neighbouring invocations read neighbours.
struct Weights {
  Buffer buffer;
  std::optional<Value> k_stride, channel_stride;
  Value at(Kernel& s, Value k, Value channel) const {
    if (!channel_stride) return s.load(buffer, k * *k_stride + channel);
    return s.load(buffer, channel * *channel_stride + k);
  }
};
Weights weights_of(Kernel& s, const tosa::View& view, std::int64_t channels) {
  const Bytes& data = view.constant(1);
  const std::int64_t k = view.in(1).shape.elements() / channels;
  if (data.null()) return {s.input(view.node().inputs[1]), std::nullopt, s.param(k)};
  const DType type = view.in(1).dtype;
  return {s.constant(type, transposed(data, static_cast<std::size_t>(channels), static_cast<std::size_t>(k),
                                      storage_size(type))),
          s.param(channels), std::nullopt};
}

void finish(Kernel& s, const tosa::View& view, const Finish& end, Value pixel, Value first_channel,
            const std::vector<Sum>& sums, Value channels) {
  s.repeat(static_cast<int>(sums.size()), [&](int q) {
    const Value channel = first_channel + q;
    sums[static_cast<std::size_t>(q)].add(bias_at(s, view, channel));
    end.store(s, pixel * channels + channel, sums[static_cast<std::size_t>(q)].sum.get());
  });
}

}  // namespace

namespace {

constexpr int most_pixels = 4;
// Of invocations: below it, more of them are worth more than what they share.
constexpr std::int64_t enough_blocks = 4096;

// A group makes a tile of neighbouring channels and pixels, so that what one of its invocations reads serves others.
struct Tile {
  std::int64_t channels, pixels;  // blocks of them in a tile
  std::int64_t across;            // tiles along the channels
  Dim down;                       // along the pixels
  Tile(std::int64_t channel_blocks, const Dim& pixel_blocks)
      : channels(static_cast<std::int64_t>(
            std::bit_floor(static_cast<std::uint64_t>(std::min<std::int64_t>(channel_blocks, 8))))),
        pixels(Shader::usual_group_size / channels),
        across((channel_blocks + channels - 1) / channels),
        down(ceil_div(pixel_blocks, pixels)) {}
  Dim invocations() const { return across * down * std::int64_t{Shader::usual_group_size}; }
};

// What a tap reads of the input for one pixel: the first channel's element, where it lies inside.
struct Read {
  Value element;
  std::optional<Value> inside;
};

// Calls body(k, reads) for each tap, whether or not it lies inside.
void for_all_taps(Kernel& s, const std::vector<Axis>& axes, const std::vector<Pixel>& pixels,
                  const std::function<void(Value k, const std::vector<Read>& reads)>& body) {
  const std::function<void(std::size_t, Value, const std::vector<Read>&)> through =
      [&](std::size_t i, Value k, const std::vector<Read>& reads) {
        if (i == axes.size()) return body(k, reads);
        const Axis& a = axes[i];
        s.loop(s.integer(0), a.kernel, s.integer(1), [&](Value tap) {
          std::vector<Read> next;
          for (std::size_t p = 0; p < pixels.size(); ++p) {
            const Value at = pixels[p].position[i] * a.stride - a.before + tap * a.dilation;
            const Value inside = below_unsigned(at, a.size);
            next.push_back({reads[p].element * a.size + at, reads[p].inside ? *reads[p].inside & inside : inside});
          }
          through(i + 1, k * a.kernel + tap, next);
        });
      };
  std::vector<Read> begin;
  for (const Pixel& p : pixels) begin.push_back({p.image, std::nullopt});
  through(0, s.integer(0), begin);
}

}  // namespace

MadeList make_convolution(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  const auto spatial = static_cast<std::size_t>(in.rank() - 2);
  // `own`: of a group, where each takes some of the input's channels (tosaic.grouped_conv2d).
  const std::int64_t channels = weight.size(0), given = in.size(in.rank() - 1), own = weight.size(weight.rank() - 1),
                     group_channels = channels / std::max<std::int64_t>(given / own, 1);
  std::vector<Dim> pixel_dims = out.dims();
  pixel_dims.pop_back();
  const Dim pixel_count = product_of(pixel_dims);
  const int block = group_channels % 4 == 0 ? 4 : 1;
  const Dim pixel_blocks = ceil_div(pixel_count, most_pixels);
  const bool many = block == 4 && most(pixel_blocks) * (channels / block) >= enough_blocks;
  const int at_once = many ? most_pixels : 1;
  const Tile tile(channels / block, many ? pixel_blocks : pixel_count);
  Kernel s(work, std::string(node.op.base()), tile.invocations());
  const Value blocks = s.param(channels / block), in_channels = s.param(given);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < spatial; ++i) axes.push_back(axis_of(s, view, i, weight.size(1 + static_cast<int>(i))));
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Weights weights = weights_of(s, view, channels);
  const Buffer input = s.input(node.inputs[0]);
  const Value all_pixels = s.param(pixel_count);

  const Value group = s.index() / s.integer(Shader::usual_group_size),
              inside = s.index() % s.integer(Shader::usual_group_size);
  const Value across = s.param(tile.across), wide = s.param(tile.channels), high = s.param(tile.pixels);
  const Value channel_block = group % across * wide + inside % wide;
  const Value first = (group / across * high + inside / wide) * at_once, channel = channel_block * block;
  s.when((channel_block >= blocks) | (first >= all_pixels), [&] { s.leave(); });
  std::vector<Pixel> pixels;
  std::vector<std::vector<Sum>> sums(static_cast<std::size_t>(at_once));
  for (auto& row : sums) {
    pixels.push_back(pixel_at(first + static_cast<std::int64_t>(pixels.size()), axes));
    for (int q = 0; q < block; ++q) row.push_back(Sum::of(s, view.out().dtype));
  }
  Value taken = in_channels, first_taken = s.integer(0);
  if (own != given) {
    taken = s.param(own);
    first_taken = channel / s.param(group_channels) * taken;
  }
  const auto at_tap = [&](Value k, const std::vector<Value>& elements, const std::vector<Read>& reads) {
    s.loop(s.integer(0), taken, s.integer(1), [&](Value c) {
      std::vector<Value> w;
      for (int q = 0; q < block; ++q) w.push_back(centred(weights.at(s, k + c, channel + q), weight_zp));
      for (std::size_t p = 0; p < elements.size(); ++p) {
        Value x = centred(s.load(input, elements[p] + c), in_zp);
        if (many) x = s.select(*reads[p].inside, x, x.kind == Kind::real ? s.real(0) : s.integer(0));
        for (std::size_t q = 0; q < w.size(); ++q) sums[p][q].add_product(x, w[q]);
      }
    });
  };
  for_all_taps(s, axes, pixels, [&](Value k, const std::vector<Read>& reads) {
    const Value from = k * taken;
    const auto element = [&](Value pixel) {
      return own == given ? pixel * in_channels : pixel * in_channels + first_taken;
    };
    if (!many) return s.when(*reads[0].inside, [&] { at_tap(from, {element(reads[0].element)}, reads); });
    std::vector<Value> elements;  // outside: any that is there
    for (const Read& r : reads) elements.push_back(element(s.select(*r.inside, r.element, s.integer(0))));
    at_tap(from, elements, reads);
  });
  s.repeat(at_once, [&](int p) {
    const auto row = static_cast<std::size_t>(p);
    const auto store = [&] { finish(s, view, end, pixels[row].number, channel, sums[row], blocks * block); };
    if (many)
      s.when(pixels[row].number < all_pixels, store);
    else
      store();
  });
  return one(s);
}

MadeList make_depthwise(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  Kernel s(work, "depthwise_conv2d", elements_of(out));
  const Value channels = s.param(out.size(3)), in_channels = s.param(in.size(3));
  const Axis y = axis_of(s, view, 0, weight.size(0)), x = axis_of(s, view, 1, weight.size(1));
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Buffer input = s.input(node.inputs[0]), weights = s.input(node.inputs[1]);
  const Value pixel = s.index() / channels, channel = s.index() % channels;
  const Value row = pixel / x.out, out_x = pixel % x.out, out_y = row % y.out, image = row / y.out;
  const Value from = weight.size(3) == 1 ? channel : channel / s.param(weight.size(3));
  const std::vector<Sum> sums{Sum::of(s, view.out().dtype)};
  for_taps(s, y, out_y, [&](Value ky, Value iy) {
    for_taps(s, x, out_x, [&](Value kx, Value ix) {
      const Value element = s.load(input, ((image * y.size + iy) * x.size + ix) * in_channels + from);
      const Value w = s.load(weights, (ky * x.kernel + kx) * channels + channel);
      sums[0].add_product(centred(element, in_zp), centred(w, weight_zp));
    });
  });
  finish(s, view, end, pixel, channel, sums, channels);
  return one(s);
}

// An output pixel is reached by the taps whose distance is a multiple of the stride.
MadeList make_transpose_convolution(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  Kernel s(work, "transpose_conv2d", elements_of(out));
  const Value channels = s.param(out.size(3)), in_channels = s.param(in.size(3));
  struct Reach {
    Value size, kernel, before, stride, out;
  };
  const auto reach = [&](std::size_t i) {
    const int dim = static_cast<int>(i) + 1;
    return Reach{s.param(in[dim]), s.param(weight.size(dim)), s.param(at(view, "out_pad", 2 * i)),
                 s.param(at(view, "stride", i)), s.param(out[dim])};
  };
  const Reach y = reach(0), x = reach(1);
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Weights weights = weights_of(s, view, weight.size(0));
  const Buffer input = s.input(node.inputs[0]);
  const Value pixel = s.index() / channels, channel = s.index() % channels;
  const Value row = pixel / x.out, out_x = pixel % x.out, out_y = row % y.out, image = row / y.out;
  const std::vector<Sum> sums{Sum::of(s, view.out().dtype)};
  const auto for_reaching = [&](const Reach& r, Value o, const std::function<void(Value tap, Value position)>& body) {
    s.loop(s.integer(0), r.kernel, s.integer(1), [&](Value tap) {
      const Value distance = o - r.before - tap, position = distance / r.stride;
      const Value reached = (distance >= 0) & (position * r.stride == distance) & (position < r.size);
      s.when(reached, [&] { body(tap, position); });
    });
  };
  for_reaching(y, out_y, [&](Value ky, Value iy) {
    for_reaching(x, out_x, [&](Value kx, Value ix) {
      const Value element = ((image * y.size + iy) * x.size + ix) * in_channels;
      const Value k = (ky * x.kernel + kx) * in_channels;
      s.loop(s.integer(0), in_channels, s.integer(1), [&](Value c) {
        sums[0].add_product(centred(s.load(input, element + c), in_zp),
                            centred(weights.at(s, k + c, channel), weight_zp));
      });
    });
  });
  finish(s, view, end, pixel, channel, sums, channels);
  return one(s);
}

MadeList make_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const int block = is_multiple(out[2], 4) ? 4 : 1;
  Kernel s(work, "matmul", floor_div(elements_of(out), block));
  const Value blocks = s.param(floor_div(out[2], block)), rows = s.param(out[1]);
  const Value inner = s.param(view.in(0).shape[2]);
  const auto a_zp = zero_point(s, view, 0, 2), b_zp = zero_point(s, view, 1, 3);
  const Buffer a = s.input(node.inputs[0]), b = s.input(node.inputs[1]);
  const Value row = s.index() / blocks, column = s.index() % blocks * block, width = blocks * block;
  const Value left = row * inner, right = row / rows * inner;
  std::vector<Sum> sums;
  for (int q = 0; q < block; ++q) sums.push_back(Sum::of(s, view.out().dtype));
  s.loop(s.integer(0), inner, s.integer(1), [&](Value k) {
    const Value x = centred(s.load(a, left + k), a_zp), at = (right + k) * width + column;
    for (int q = 0; q < block; ++q) sums[static_cast<std::size_t>(q)].add_product(x, centred(s.load(b, at + q), b_zp));
  });
  s.repeat(block, [&](int q) { end.store(s, row * width + column + q, sums[static_cast<std::size_t>(q)].sum.get()); });
  return one(s);
}

}  // namespace tosaic::shaders
