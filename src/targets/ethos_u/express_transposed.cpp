// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions as plain ones, which fuse with what follows.
#include <algorithm>
#include <utility>

#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

// One axis of a transposed convolution with stride s as s plain convolutions, phase r on the taps r, r + s, ...
struct PhaseAxis {
  std::int64_t taps, before, after, made;  // of each convolution: kernel, padding, outputs
  std::int64_t cut;                        // results of all phases that lie before the output's first
  bool possible;

  PhaseAxis(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t out_pad, std::int64_t outputs)
      : taps((kernel + stride - 1) / stride) {
    const std::int64_t skipped = std::min(-out_pad / stride, taps - 1);
    before = taps - 1 - skipped;
    cut = -out_pad - skipped * stride;
    const std::int64_t least = size + before - taps + 1;
    made = std::max((cut + outputs + stride - 1) / stride, least);
    after = made - least;
    possible = out_pad <= 0 && after <= taps - 1;
  }
};

std::pair<PhaseAxis, PhaseAxis> phase_axes(const tosa::View& view) {
  const Shape &x = view.in(0).shape, &w = view.in(1).shape, &y = view.out().shape;
  const auto &pad = view.ints("out_pad"), &stride = view.ints("stride");
  return {PhaseAxis(x.size(1), w.size(1), stride[0], pad[0], y.size(1)),
          PhaseAxis(x.size(2), w.size(2), stride[1], pad[2], y.size(2))};
}

}  // namespace

// A transposed convolution with stride s writes s * s interleaved images, each a plain convolution on the taps that
// fall on it. Those of one row lie in the channels, so the rows only have to be put under each other.
bool transposed_by_phases(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::transpose_conv2d) return false;
  const tosa::View view(graph, node);
  const auto weights = weights_of(graph, node), zero = view.constant_integers(4), bias = view.constant_integers(2);
  const TensorType x = view.in(0), y = view.out();
  if (!weights || !zero || !bias || view.in(1).dtype != DType::i8) return false;
  const auto [down, across] = phase_axes(view);
  if (!down.possible || !across.possible) return false;
  const Shape w = view.in(1).shape;  // O H W I
  const Ints stride = view.ints("stride");
  const std::int64_t outputs = w.size(0), channels = w.size(3), sy = stride[0], sx = stride[1];
  Words say{out, graph, node.loc};
  Ints biases;
  for (std::int64_t r = 0; r < (bias->size() == 1 ? 1 : sx); ++r)
    biases.insert(biases.end(), bias->begin(), bias->end());
  std::vector<ValueId> inputs = node.inputs;
  inputs[2] = say.integers(view.in(2).dtype, biases);
  Attrs attrs;
  attrs.set("pad", Ints{down.before, down.after, across.before, across.after});
  attrs.set("stride", Ints{1, 1});
  attrs.set("dilation", Ints{1, 1});
  for (const char* kept : {"acc_type", "local_bound"})
    if (const Attr* attr = node.attrs.find(kept)) attrs.set(kept, *attr);
  std::vector<ValueId> parts;
  for (std::int64_t ry = 0; ry < sy; ++ry) {
    Ints phase(static_cast<std::size_t>(sx * outputs * down.taps * across.taps * channels), zero->at(0));
    std::size_t i = 0;
    for (std::int64_t rx = 0; rx < sx; ++rx)
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t a = down.taps - 1; a >= 0; --a)
          for (std::int64_t b = across.taps - 1; b >= 0; --b)
            for (std::int64_t c = 0; c < channels; ++c, ++i)
              if (const std::int64_t ky = ry + a * sy, kx = rx + b * sx; ky < w.size(1) && kx < w.size(2))
                phase[i] = (*weights)[static_cast<std::size_t>(((o * w.size(1) + ky) * w.size(2) + kx) * channels + c)];
    inputs[1] = graph.add_value("npu", {DType::i8, Shape{sx * outputs, down.taps, across.taps, channels}, {}},
                                constant_bytes(DType::i8, phase));
    const TensorType made{y.dtype, Shape{x.shape.size(0), down.made, across.made, sx * outputs}, {}};
    parts.push_back(out.add(tosa::op::conv2d, inputs, attrs, made, node.loc));
  }
  // Side by side along W, they lie in memory as the image does.
  ValueId v = say.reshape(say.concat(parts, 2), {x.shape.size(0), down.made * sy, across.made * sx, outputs});
  v = say.slice(v, 1, down.cut, y.shape.size(1));
  v = say.slice(v, 2, across.cut, y.shape.size(2));
  say.reshape(v, y.shape.sizes(), node.outputs[0]);
  return true;
}

// The command for a transposed convolution leaves its sums to a RESCALE of its own; plain convolutions take a half to a
// quarter of the cycles, and less memory. Cutting their results to size costs copies, which only U85 wins back.
void transposed_as_convolutions(Graph& graph, bool cuts_too) {
  const auto uncut = [](const tosa::View& view) {
    const auto [down, across] = phase_axes(view);
    const auto& stride = view.ints("stride");
    const Shape& y = view.out().shape;
    return down.cut == 0 && across.cut == 0 && down.made * stride[0] == y[1] && across.made * stride[1] == y[2];
  };
  bool changed = false;
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const bool sums_fit_views =
        node.op == tosa::op::transpose_conv2d && graph[node.outputs[0]].type.dtype == DType::i32;
    const bool rewritten =
        sums_fit_views && (cuts_too || uncut(tosa::View(graph, node))) && transposed_by_phases(out, graph, node);
    if (!rewritten) out.keep(std::move(node));
    changed |= rewritten;
  }
  if (changed) results_before_views(graph);
}

}  // namespace tosaic::ethos_u
