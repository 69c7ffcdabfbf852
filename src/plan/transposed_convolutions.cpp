// SPDX-License-Identifier: Apache-2.0
#include "plan/transposed_convolutions.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "plan/uses.h"

namespace tosaic::plan {
namespace {

using Ints = std::vector<std::int64_t>;

// Phases [first, first + count) of an axis, which have as many taps: f, f + s, f + 2 s ... for phase f.
struct Phases {
  std::int64_t first, count, taps;
};

// One axis. Index j of phase f is index j * s + f - cut of the result.
struct Axis {
  std::int64_t kernel, stride, outputs;
  std::int64_t made = 0, cut = 0;      // the size of each phase; of all together, what lies before the result
  std::int64_t before = 0, after = 0;  // padding, for phases with the most taps
  std::int64_t most_taps = 0;
  bool possible = false;

  Axis(std::int64_t size, std::int64_t of_kernel, std::int64_t of_stride, std::int64_t out_pad, std::int64_t out)
      : kernel(of_kernel), stride(of_stride), outputs(out), most_taps((of_kernel + of_stride - 1) / of_stride) {
    const std::int64_t skipped = std::min(-out_pad / stride, kernel / stride - 1);  // indices that nobody asks for
    before = most_taps - 1 - skipped;
    cut = -out_pad - skipped * stride;
    const std::int64_t least = size + before - most_taps + 1;
    made = std::max((cut + outputs + stride - 1) / stride, least);
    after = made - least;
    possible = out_pad <= 0 && kernel >= stride;
  }
  bool whole() const { return cut == 0 && made * stride == outputs; }
  // A tap that not all phases have would be a weight of 0, and 0 times infinity is no 0.
  std::vector<Phases> of_as_many_taps() const {
    const std::int64_t longer = kernel % stride;
    if (longer == 0) return {{0, stride, most_taps}};
    return {{0, longer, most_taps}, {longer, stride - longer, most_taps - 1}};
  }
};

class Splitter {
 public:
  Splitter(Graph& graph, std::span<const ValueId> observed)
      : graph_(graph), uses_(graph, observed), gone_(graph.nodes.size()), out_(graph) {}

  void run() {
    std::size_t n = 0;
    out_.each([&](Node& node) {
      const std::size_t at = n++;
      if (gone_[at] || (node.op == tosa::op::transpose_conv2d && split(node))) return;
      out_.keep(std::move(node));
    });
  }

 private:
  bool split(const Node& node) {
    const Value &x = graph_[node.inputs[0]], &w = graph_[node.inputs[1]], &b = graph_[node.inputs[2]];
    const Shape& y = graph_[node.outputs[0]].type.shape;
    if (!x.type.shape.is_static() || !y.is_static() || y.is_empty() || x.type.shape.is_empty()) return false;
    if (!is_laid_out(w) || !is_laid_out(b)) return false;
    const auto &pad = node.attrs.get<Ints>("out_pad"), &stride = node.attrs.get<Ints>("stride");
    const auto axis = [&](int dim) {
      const auto i = static_cast<std::size_t>(dim - 1);
      return Axis(x.type.shape.size(dim), w.type.shape.size(dim), stride[i], pad[2 * i], y.size(dim));
    };
    const Axis down = axis(1), across = axis(2);
    if (!down.possible || !across.possible) return false;
    const std::vector<Node> finish = finished_by(node.outputs[0]);
    const ValueId result = finish.empty() ? node.outputs[0] : finish.back().outputs[0];
    put_in_place(node, in_channels(node, down, across, finish), down, across, result);
    return true;
  }

  // What makes the results of the sums, element by element: kernels do it with the sums at hand, not behind moves.
  std::vector<Node> finished_by(ValueId sums) {
    std::vector<Node> finish;
    for (auto n = uses_.only_user(sums); n; n = uses_.only_user(finish.back().outputs[0])) {
      Node& node = out_.nodes()[*n];
      const bool finishes = node.op == tosa::op::rescale || node.op == tosa::op::clamp;
      if (!finishes || !uses_.only_first_computed(node)) break;
      finish.push_back(std::move(node));
      gone_[*n] = 1;
    }
    return finish;
  }

  // A constant whose elements are whole bytes.
  static bool is_laid_out(const Value& v) {
    return v.is_constant() && v.type.dtype != DType::i4 && v.constant.size() == v.type.storage_bytes();
  }

  // [N, rows of a phase, columns of a phase, phases of rows * phases of columns * channels].
  ValueId in_channels(const Node& node, const Axis& down, const Axis& across, const std::vector<Node>& finish) {
    std::vector<ValueId> parts;
    for (const Phases& some : down.of_as_many_taps()) {
      // Where columns make several parts, those of one row must follow one another.
      const std::vector<Phases> columns = across.of_as_many_taps();
      const std::int64_t at_once = columns.size() == 1 ? some.count : 1;
      for (std::int64_t f = some.first; f < some.first + some.count; f += at_once)
        for (const Phases& side : columns) {
          ValueId part = convolution(node, down, {f, at_once, some.taps}, across, side);
          for (const Node& step : finish) part = finished(step, part, at_once * side.count);
          parts.push_back(part);
        }
    }
    if (parts.size() == 1) return parts[0];
    TensorType all = graph_[parts[0]].type;
    std::int64_t channels = 0;
    for (const ValueId part : parts) channels += graph_[part].type.shape.size(3);
    all.shape.set(3, channels);
    return add(node, tosa::op::concat, parts, {{"axis", std::int64_t{3}}}, std::move(all));
  }

  ValueId convolution(const Node& node, const Axis& down, const Phases& rows, const Axis& across,
                      const Phases& columns) {
    const std::int64_t count = rows.count * columns.count;
    std::vector<ValueId> inputs = node.inputs;
    inputs[1] = weights(node.inputs[1], down.stride, rows, across.stride, columns);
    if (graph_[node.inputs[2]].type.shape.elements() > 1) inputs[2] = repeated(node.inputs[2], count);
    Attrs attrs;
    for (const auto& [name, value] : node.attrs)
      if (name != "out_pad") attrs.set(name, value);
    const auto before = [](const Axis& axis, const Phases& some) { return axis.before - (axis.most_taps - some.taps); };
    attrs.set("pad", Ints{before(down, rows), down.after, before(across, columns), across.after});
    attrs.set("stride", Ints{1, 1});
    attrs.set("dilation", Ints{1, 1});
    const TensorType& y = graph_[node.outputs[0]].type;
    TensorType made{y.dtype, Shape{y.shape.size(0), down.made, across.made, count * y.shape.size(3)}, {}};
    return add(node, tosa::op::conv2d, std::move(inputs), std::move(attrs), std::move(made));
  }

  ValueId finished(const Node& step, ValueId v, std::int64_t phases) {
    std::vector<ValueId> inputs = step.inputs;
    inputs[0] = v;
    if (step.op == tosa::op::rescale && step.attrs.get<bool>("per_channel"))
      for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) inputs[i] = repeated(inputs[i], phases);
    TensorType type{graph_[step.outputs[0]].type.dtype, graph_[v].type.shape, {}};
    return add(step, step.op, std::move(inputs), step.attrs, std::move(type));
  }

  // [phases * OC, taps, taps, IC] of [OC, KH, KW, IC]. A phase's last tap meets the first place of its window.
  ValueId weights(ValueId of, std::int64_t sy, const Phases& rows, std::int64_t sx, const Phases& columns) {
    const Value& w = graph_[of];
    const Shape& shape = w.type.shape;
    const std::int64_t outputs = shape.size(0), kernel_rows = shape.size(1), kernel_columns = shape.size(2);
    const std::size_t run = static_cast<std::size_t>(shape.size(3)) * storage_size(w.type.dtype);
    TensorType type{
        w.type.dtype, Shape{rows.count * columns.count * outputs, rows.taps, columns.taps, shape.size(3)}, {}};
    std::byte* to = nullptr;
    Bytes all = Bytes::fresh(type.storage_bytes(), to);
    for (std::int64_t fy = rows.first; fy < rows.first + rows.count; ++fy)
      for (std::int64_t fx = columns.first; fx < columns.first + columns.count; ++fx)
        for (std::int64_t o = 0; o < outputs; ++o)
          for (std::int64_t a = rows.taps - 1; a >= 0; --a)
            for (std::int64_t b = columns.taps - 1; b >= 0; --b, to += run) {
              const std::int64_t tap = (o * kernel_rows + fy + a * sy) * kernel_columns + fx + b * sx;
              std::memcpy(to, w.constant.data() + static_cast<std::size_t>(tap) * run, run);
            }
    return graph_.add_value(named_after(of), std::move(type), std::move(all));
  }
  ValueId repeated(ValueId of, std::int64_t times) {
    const Value& v = graph_[of];
    TensorType type{v.type.dtype, Shape{times * v.type.shape.elements()}, {}};
    std::byte* to = nullptr;
    Bytes all = Bytes::fresh(type.storage_bytes(), to);
    for (std::int64_t i = 0; i < times; ++i, to += v.constant.size())
      std::memcpy(to, v.constant.data(), v.constant.size());
    return graph_.add_value(named_after(of), std::move(type), std::move(all));
  }

  void put_in_place(const Node& node, ValueId v, const Axis& down, const Axis& across, ValueId result) {
    const Shape y = graph_[result].type.shape;
    const std::int64_t images = y.size(0), channels = y.size(3);
    if (down.stride > 1 && across.made > 1) {
      v = reshape(node, v, {images * down.made, across.made, down.stride, across.stride * channels});
      const Shape turned{images * down.made, down.stride, across.made, across.stride * channels};
      v = add(node, tosa::op::transpose, {v}, {{"perms", Ints{0, 2, 1, 3}}}, graph_[v].type.with(turned));
    }
    const bool whole = down.whole() && across.whole();
    v = reshape(node, v, {images, down.made * down.stride, across.made * across.stride, channels},
                whole ? result : no_value);
    if (whole) return;
    const ValueId start = sizes({0, down.cut, across.cut, 0}), size = sizes(y.sizes());
    out_.add(tosa::op::slice, {v, start, size}, {}, result, node.loc);
  }

  ValueId reshape(const Node& node, ValueId v, const Ints& dims, ValueId to = no_value) {
    if (to == no_value) to = fresh(node, graph_[v].type.with(Shape(dims)));
    return out_.add(tosa::op::reshape, {v, sizes(dims)}, {}, to, node.loc);
  }
  ValueId add(const Node& node, Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType type) {
    return out_.add(op, std::move(inputs), std::move(attrs), fresh(node, std::move(type)), node.loc);
  }
  ValueId fresh(const Node& node, TensorType type) {
    return graph_.add_value(named_after(node.outputs[0]), std::move(type));
  }
  std::string named_after(ValueId v) const { return graph_[v].name + ".phases" + std::to_string(graph_.values.size()); }
  ValueId sizes(const Ints& list) {
    return graph_.add_value("shape" + std::to_string(graph_.values.size()), {DType::shape, Shape{std::ssize(list)}, {}},
                            constant_bytes(DType::shape, std::span<const std::int64_t>(list)));
  }

  Graph& graph_;
  const Uses uses_;  // of the graph as it was
  std::vector<char> gone_;
  Rewriter out_;
};

}  // namespace

void transposed_as_convolutions(Graph& graph, std::span<const ValueId> observed) {
  const auto is_transposed = [](const Node& node) { return node.op == tosa::op::transpose_conv2d; };
  if (std::ranges::any_of(graph.nodes, is_transposed)) Splitter(graph, observed).run();
}

}  // namespace tosaic::plan
