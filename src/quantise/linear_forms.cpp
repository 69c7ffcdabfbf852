// SPDX-License-Identifier: Apache-2.0
// Layer norms and their like, said with linear maps of the last dim: one accumulation and one rounding instead of
// several, and what NPUs are built for.
//   x - mean(x)            is  linear(x, I - 1/C)     whose weights are whole multiples of 1/C: exact in 8 bits
//   x * weight + bias      is  a depthwise convolution of length 1, one weight per channel
#include <algorithm>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/provenance.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t most_exact = 127;  // the largest 8-bit weight: C - 1 against -1

class Rewrite {
 public:
  Rewrite(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options)
      : graph_(graph),
        inner_(inner),
        options_(options),
        made_by_(producers(graph)),
        read_by_(consumers(graph)),
        out_(graph) {
    is_output_.assign(graph.values.size(), 0);
    for (ValueId v : graph.outputs) is_output_[v] = 1;
  }

  void run() {
    std::vector<Node>& nodes = out_.nodes();  // the indices above are into these
    std::vector<char> done(nodes.size(), 0);
    // From the end, so that a sum takes the product before it along.
    std::vector<std::vector<Node>> instead(nodes.size());
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (done[n]) continue;
      if (centred(nodes[n], nodes, done) || scaled(nodes[n], nodes, done)) done[n] = 1;
      instead[n].swap(graph_.nodes);
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (Node& node : instead[n]) out_.keep(std::move(node));
      if (!done[n]) out_.keep(std::move(nodes[n]));
    }
  }

 private:
  bool real_tensor(ValueId v) const {
    return v != no_value && graph_[v].type.dtype == DType::f32 && !graph_[v].type.quantised();
  }
  bool computed(ValueId v) const {
    return real_tensor(v) && !graph_[v].is_constant() && graph_[v].type.rank() > 0 && graph_[v].type.shape.is_static();
  }
  bool read_once(ValueId v) const { return read_by_[v].size() == 1 && !is_output_[v]; }
  static bool plain(const Node& node) {  // no alpha, or one that changes nothing
    const Attr* alpha = node.attrs.find("alpha");
    return !alpha || *alpha == Attr(std::int64_t{1}) || *alpha == Attr(1.0);
  }

  // x - mean(x) over the last dim of a tensor that will have 8 bits. A matrix has one size.
  bool centred(const Node& sub, const std::vector<Node>& nodes, std::vector<char>& done) {
    if (sub.op != aten::op::sub_Tensor || !plain(sub) || sub.inputs.size() != 2) return false;
    const ValueId x = sub.inputs[0], mean = sub.inputs[1];
    if (!computed(x) || inner_[x] || mean == no_value || made_by_[mean] < 0 || !read_once(mean)) return false;
    const auto m = static_cast<std::size_t>(made_by_[mean]);
    const int last = graph_[x].type.rank() - 1;
    const std::int64_t channels = graph_[x].type.shape.size(last);
    const auto* dims = nodes[m].attrs.find("dim");
    if (nodes[m].op != aten::op::mean_dim || nodes[m].inputs[0] != x || !nodes[m].attrs.get_or("keepdim", false) ||
        size_varies(options_, graph_, x, last) || !dims || (*dims != Attr(Ints{last}) && *dims != Attr(Ints{-1})) ||
        channels < 2 || channels - 1 > most_exact)
      return false;
    std::vector<double> weight(static_cast<std::size_t>(channels * channels), -1.0 / static_cast<double>(channels));
    for (std::int64_t c = 0; c < channels; ++c) weight[static_cast<std::size_t>(c * channels + c)] += 1.0;
    const ValueId w = constant({channels, channels}, weight);
    out_.add(aten::op::linear, {x, w, no_value}, {}, sub.outputs[0], joined(sub.loc, nodes[m].loc));
    done[m] = 1;
    return true;
  }

  // A constant with one element per index of the last dim, or one for all.
  bool per_channel(ValueId v, std::int64_t channels) const {
    if (!real_tensor(v) || !graph_[v].is_constant()) return false;
    const Shape& shape = graph_[v].type.shape;
    return shape.rank() > 0 && shape.elements() == channels && shape.size(shape.rank() - 1) == channels;
  }
  // The two operands of a call, the computed one first, where the other is such a constant.
  std::optional<std::pair<ValueId, ValueId>> split(const Node& node, Operator op) const {
    if (node.op != op || node.inputs.size() != 2 || !plain(node)) return std::nullopt;
    for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const ValueId x = node.inputs[i], c = node.inputs[1 - i];
      if (!computed(x)) continue;
      const Shape& shape = graph_[x].type.shape;
      if (shape == graph_[node.outputs[0]].type.shape && per_channel(c, shape.size(shape.rank() - 1)))
        return std::pair(x, c);
    }
    return std::nullopt;
  }

  // x * weight + bias along the last dim.
  bool scaled(const Node& sum, const std::vector<Node>& nodes, std::vector<char>& done) {
    const auto plus = split(sum, aten::op::add_Tensor);
    if (!plus || made_by_[plus->first] < 0 || !read_once(plus->first)) return false;
    const auto p = static_cast<std::size_t>(made_by_[plus->first]);
    const auto times = split(nodes[p], aten::op::mul_Tensor);
    if (!times) return false;
    const auto [x, factors] = *times;
    const Shape shape = graph_[x].type.shape;
    const std::int64_t channels = shape.size(shape.rank() - 1), rows = shape.elements() / channels;
    const ValueId weight =
        graph_.add_value(graph_[factors].name, {DType::f32, Shape{channels, 1, 1}, {}}, graph_[factors].constant);
    const ValueId bias =
        graph_.add_value(graph_[plus->second].name, {DType::f32, Shape{channels}, {}}, graph_[plus->second].constant);
    const LocRef loc = joined(sum.loc, nodes[p].loc);
    Composer c(graph_, [](Operator) { return "linear"; });
    c.set_loc(loc);
    const Val images = c.aten(aten::op::view, {c.value(x)}, {{"size", Ints{1, rows, channels}}});
    const Val y = c.aten(aten::op::conv1d, {calls::transpose(images, 1, 2), c.value(weight), c.value(bias)},
                         {{"groups", channels}});
    out_.add(aten::op::view, {calls::transpose(y, 1, 2).id()}, {{"size", shape.sizes()}}, sum.outputs[0], loc);
    inner_.resize(graph_.values.size(), 1);
    done[p] = 1;
    return true;
  }

  ValueId constant(const Shape& shape, const std::vector<double>& values) {
    const ValueId v = graph_.add_value("centring", {DType::f32, shape, {}}, constant_bytes(DType::f32, values));
    inner_.resize(graph_.values.size(), 1);
    return v;
  }

  Graph& graph_;
  std::vector<char>& inner_;
  const QuantiseOptions& options_;
  std::vector<std::int32_t> made_by_;
  std::vector<std::vector<std::uint32_t>> read_by_;
  Rewriter out_;
  std::vector<char> is_output_;
};

}  // namespace

void linear_forms(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options) {
  Rewrite(graph, inner, options).run();
}

}  // namespace tosaic
