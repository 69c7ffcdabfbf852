// SPDX-License-Identifier: Apache-2.0
// RESIZE by other factors than the device has.
#include <algorithm>
#include <numeric>

#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t most_phases = 8, most_weight = 127, longest_stride = 3;

// One axis of a bilinear RESIZE (TOSA 1.0, RESIZE): output o reads the pixels i and i + 1, (o * d + offset) / n being
// i with remainder r, with weights n - r and r. The remainder repeats every n / gcd(n, d) outputs, while i moves on by
// d / gcd(n, d): as many convolutions with that stride, whose kernels differ.
struct Phases {
  std::int64_t count, step, rounds;  // rounds: repetitions that cover the output
  std::int64_t first = 0, taps = 2;  // the kernels' first pixel in the first round, and their size
  std::vector<Ints> kernels;

  Phases(std::int64_t n, std::int64_t d, std::int64_t offset, std::int64_t size)
      : count(n / std::gcd(n, d)), step(d / std::gcd(n, d)), rounds((size + count - 1) / count) {
    if (!fits()) return;
    const auto floor_of = [&](std::int64_t at) { return (at - (at % n + n) % n) / n; };
    first = floor_of(offset);
    taps = floor_of((count - 1) * d + offset) - first + 2;
    for (std::int64_t o = 0; o < count; ++o) {
      const std::int64_t at = o * d + offset, pixel = floor_of(at), r = at - pixel * n;
      Ints kernel(static_cast<std::size_t>(taps), 0);
      kernel[static_cast<std::size_t>(pixel - first)] = n - r;
      kernel[static_cast<std::size_t>(pixel - first) + 1] = r;
      kernels.push_back(std::move(kernel));
    }
  }
  bool fits() const { return count <= most_phases && step <= longest_stride; }
  std::int64_t heaviest() const {
    std::int64_t most = 0;
    for (const Ints& kernel : kernels) most = std::max(most, *std::max_element(kernel.begin(), kernel.end()));
    return most;
  }
  std::int64_t pixels() const { return (rounds - 1) * step + taps; }  // that all rounds read
};

// The pixels of an axis that the convolutions read: beyond an edge RESIZE takes the edge again.
ValueId pixels_of(Words& say, ValueId x, int axis, const Phases& phases) {
  std::vector<ValueId> parts;
  const std::int64_t size = say.type(x).shape.size(axis), begin = phases.first, end = begin + phases.pixels();
  for (std::int64_t i = begin; i < std::min<std::int64_t>(end, 0); ++i) parts.push_back(say.slice(x, axis, 0, 1));
  const std::int64_t from = std::clamp<std::int64_t>(begin, 0, size), to = std::clamp<std::int64_t>(end, 0, size);
  if (from < to) parts.push_back(say.slice(x, axis, from, to - from));
  for (std::int64_t i = std::max(begin, size); i < end; ++i) parts.push_back(say.slice(x, axis, size - 1, 1));
  return say.concat(parts, axis);
}

}  // namespace

// Every pixel k times along each axis: copies next to each other, along W first, then whole rows.
bool nearest_by_copies(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::resize || node.attrs.get<std::string>("mode") != "nearest") return false;
  const tosa::View view(graph, node);
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2);
  if (!scale || !offset) return false;
  const TensorType x = view.in(0), y = view.out();
  std::int64_t times[2];
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t in = x.shape.size(1 + axis), size = y.shape.size(1 + axis), n = (*scale)[2 * a],
                       d = (*scale)[2 * a + 1];
    if (size % in != 0) return false;
    times[axis] = size / in;
    for (std::int64_t o = 0; o < size; ++o) {  // TOSA 1.0, RESIZE: the nearer of two neighbours, clamped
      const std::int64_t at = o * d + (*offset)[a];
      std::int64_t whole = at / n;
      if (whole * n > at) --whole;
      if (2 * (at - whole * n) >= n) ++whole;
      if (std::clamp<std::int64_t>(whole, 0, in - 1) != o / times[axis]) return false;
    }
  }
  Words say{out, graph, node.loc};
  const auto repeated = [&](ValueId v, std::int64_t rows, std::int64_t columns, std::int64_t n) {
    return say.concat(
        std::vector<ValueId>(static_cast<std::size_t>(n), say.reshape(v, {1, rows, columns, x.shape.size(3)})), 2);
  };
  const std::int64_t rows = x.shape.size(0) * x.shape.size(1);
  ValueId v = repeated(node.inputs[0], rows * x.shape.size(2), 1, times[1]);
  v = repeated(v, rows, x.shape.size(2) * times[1], times[0]);
  say.reshape(v, y.shape.sizes(), node.outputs[0]);
  return true;
}

// The image as often in the channels as a row has phases, then a depthwise convolution for each phase of the columns.
// Side by side along W, their results lie in memory as the enlarged image does.
bool bilinear_by_phases(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::resize || node.attrs.get<std::string>("mode") != "bilinear") return false;
  const tosa::View view(graph, node);
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2);
  if (!scale || !offset) return false;
  const TensorType x = view.in(0), y = view.out();
  const Phases down((*scale)[0], (*scale)[1], (*offset)[0], y.shape.size(1)),
      across((*scale)[2], (*scale)[3], (*offset)[1], y.shape.size(2));
  if (!down.fits() || !across.fits() || down.heaviest() * across.heaviest() > most_weight) return false;

  Words say{out, graph, node.loc};
  const std::int64_t channels = x.shape.size(3);
  ValueId v = pixels_of(say, node.inputs[0], 1, down);
  v = pixels_of(say, v, 2, across);
  v = say.concat(std::vector<ValueId>(static_cast<std::size_t>(across.count), v), 3);

  Attrs attrs;
  attrs.set("pad", Ints{0, 0, 0, 0});
  attrs.set("stride", Ints{down.step, across.step});
  attrs.set("dilation", Ints{1, 1});
  attrs.set("acc_type", y.dtype);
  attrs.set("local_bound", false);
  const ValueId zero = say.integers(x.dtype, {0}), weight_zero = say.integers(DType::i8, {0}),
                bias = say.integers(y.dtype, {0});
  std::vector<ValueId> parts;
  for (const Ints& column : down.kernels) {
    Ints weights;  // H, W, phase and channel
    for (std::int64_t wy : column)
      for (std::size_t tap = 0; tap < static_cast<std::size_t>(across.taps); ++tap)
        for (const Ints& row : across.kernels)
          weights.insert(weights.end(), static_cast<std::size_t>(channels), wy * row[tap]);
    const ValueId weight =
        graph.add_value("npu", {DType::i8, Shape{down.taps, across.taps, across.count * channels, 1}, {}},
                        constant_bytes(DType::i8, weights));
    parts.push_back(out.add(tosa::op::depthwise_conv2d, {v, weight, bias, zero, weight_zero}, attrs,
                            y.with(Shape{x.shape.size(0), down.rounds, across.rounds, across.count * channels}),
                            node.loc));
  }
  v = say.reshape(say.concat(parts, 2),
                  {x.shape.size(0), down.rounds * down.count, across.rounds * across.count, channels});
  v = say.slice(v, 1, 0, y.shape.size(1));
  v = say.slice(v, 2, 0, y.shape.size(2));
  say.reshape(v, y.shape.sizes(), node.outputs[0]);
  return true;
}

}  // namespace tosaic::ethos_u
