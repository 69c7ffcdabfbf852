// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/resize.h"

#include "ir/tosa_operators.h"

#include <algorithm>
#include <cstring>

namespace tosaic::cpu {
namespace {

// Along one dim: output o lies between inputs `low` and `high`, `rest`/`unit` of the way (spec RESIZE).
struct Sample {
  std::int64_t low, high, rest;
  bool nearer_high;
};
std::vector<Sample> samples(std::int64_t out, std::int64_t in, std::int64_t numerator, std::int64_t denominator,
                            std::int64_t offset) {
  std::vector<Sample> result;
  for (std::int64_t o = 0; o < out; ++o) {
    const std::int64_t at = o * denominator + offset;
    std::int64_t i = at / numerator;
    if (i * numerator > at) --i;  // towards minus infinity
    const std::int64_t rest = at - i * numerator;
    result.push_back({std::max<std::int64_t>(i, 0), std::min(i + 1, in - 1), rest, 2 * rest >= numerator});
  }
  return result;
}

struct Resize {
  std::vector<Sample> y, x;
  std::int64_t y_unit = 1, x_unit = 1;
  std::int64_t batch = 1, ih = 1, iw = 1, channels = 1;
  ValueId input = no_value, output = no_value;

  template <class In>
  const In* pixel(const In* in, std::int64_t n, std::int64_t iy, std::int64_t ix) const {
    return in + ((n * ih + iy) * iw + ix) * channels;
  }
  // Line `row` of the output, n * OH + oy.
  template <class In, class Out>
  void bilinear(const In* in, std::int64_t row, Out* out) const {
    using Weight = std::conditional_t<std::is_floating_point_v<In>, float, Out>;
    const std::int64_t n = row / static_cast<std::int64_t>(y.size());
    const Sample& py = y[static_cast<std::size_t>(row % static_cast<std::int64_t>(y.size()))];
    auto share = [](std::int64_t rest, std::int64_t unit) {
      if constexpr (std::is_floating_point_v<In>)
        return static_cast<float>(rest) / static_cast<float>(unit);
      else
        return static_cast<Out>(rest);
    };
    const Weight dy = share(py.rest, y_unit),
                 one_y = std::is_floating_point_v<In> ? Weight{1} : static_cast<Weight>(y_unit);
    const Weight one_x = std::is_floating_point_v<In> ? Weight{1} : static_cast<Weight>(x_unit);
    for (const Sample& px : x) {
      const Weight dx = share(px.rest, x_unit);
      const In *v00 = pixel(in, n, py.low, px.low), *v01 = pixel(in, n, py.low, px.high);
      const In *v10 = pixel(in, n, py.high, px.low), *v11 = pixel(in, n, py.high, px.high);
      const Weight w00 = (one_y - dy) * (one_x - dx), w01 = (one_y - dy) * dx, w10 = dy * (one_x - dx), w11 = dy * dx;
      for (std::int64_t c = 0; c < channels; ++c)
        out[c] = static_cast<Out>(v00[c] * w00 + v01[c] * w01 + v10[c] * w10 + v11[c] * w11);
      out += channels;
    }
  }
  template <class In, class Out>
  void nearest(const In* in, std::int64_t row, Out* out) const {
    const std::int64_t n = row / static_cast<std::int64_t>(y.size());
    const Sample& py = y[static_cast<std::size_t>(row % static_cast<std::int64_t>(y.size()))];
    for (const Sample& px : x) {
      const In* v = pixel(in, n, py.nearer_high ? py.high : py.low, px.nearer_high ? px.high : px.low);
      std::copy_n(v, channels, out);
      out += channels;
    }
  }
};

template <class In, class Out, bool linear>
void add_step(Planning& planning, std::uint32_t n, Resize resize) {
  Step step{.kernel = "resize", .nodes = {n}, .reads = {resize.input}, .writes = {resize.output}};
  const std::int64_t rows = resize.batch * static_cast<std::int64_t>(resize.y.size());
  const std::int64_t line = static_cast<std::int64_t>(resize.x.size()) * resize.channels;
  const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, line));
  step.run = [resize = std::make_shared<Resize>(std::move(resize)), rows, line,
              per_task](const Frame& frame) -> Status {
    const auto* in = static_cast<const In*>(frame.read(resize->input));
    auto* out = static_cast<Out*>(frame.write(resize->output));
    frame.pool.run((rows + per_task - 1) / per_task, [&](std::int64_t task, int) {
      for (std::int64_t row = task * per_task; row < std::min(rows, (task + 1) * per_task); ++row) {
        if constexpr (linear)
          resize->bilinear(in, row, out + row * line);
        else
          resize->nearest(in, row, out + row * line);
      }
    });
    return {};
  };
  planning.add(std::move(step));
}

}  // namespace

bool take_resize(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::resize) return false;
  const tosa::View view(planning.graph, node);
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2);
  if (!scale || !offset) return false;
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  Resize resize;
  resize.input = node.inputs[0];
  resize.output = node.outputs[0];
  resize.batch = in.size(0);
  resize.ih = in.size(1);
  resize.iw = in.size(2);
  resize.channels = in.size(3);
  resize.y_unit = (*scale)[0];
  resize.x_unit = (*scale)[2];
  resize.y = samples(out.size(1), in.size(1), (*scale)[0], (*scale)[1], (*offset)[0]);
  resize.x = samples(out.size(2), in.size(2), (*scale)[2], (*scale)[3], (*offset)[1]);
  const DType type = view.in(0).dtype;
  if (view.text("mode") == "bilinear") {
    if (type == DType::f32) return add_step<float, float, true>(planning, n, std::move(resize)), true;
    if (type == DType::i8) return add_step<std::int8_t, std::int32_t, true>(planning, n, std::move(resize)), true;
    if (type == DType::i16) return add_step<std::int16_t, std::int64_t, true>(planning, n, std::move(resize)), true;
    return false;
  }
  switch (storage_size(type)) {
    case 1: return add_step<std::uint8_t, std::uint8_t, false>(planning, n, std::move(resize)), true;
    case 2: return add_step<std::uint16_t, std::uint16_t, false>(planning, n, std::move(resize)), true;
    case 4: return add_step<std::uint32_t, std::uint32_t, false>(planning, n, std::move(resize)), true;
    default: return false;
  }
}

}  // namespace tosaic::cpu
