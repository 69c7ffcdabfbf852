// SPDX-License-Identifier: Apache-2.0
#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"

#include <algorithm>

namespace tosaic::ethos_u {
namespace {

constexpr Rewrite rewrites[] = {conv3d_by_slices,          long_stride_into_channels, long_stride_in_two_steps,
                                tall_kernel_into_channels, depthwise_as_dense,        transposed_by_phases,
                                average_by_zones,          average_as_sums,           long_sum_in_two_steps,
                                split_long_transpose,      nearest_by_copies,         bilinear_by_phases,
                                select_by_bounds};
constexpr int most_rounds = 6;  // a rewrite's nodes may need another; none makes a circle

bool one_round(Graph& graph, NativeCheck native) {
  bool changed = false;
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const bool foreign = native(tosa::View(graph, node)).has_value();
    const bool rewritten = foreign && std::any_of(std::begin(rewrites), std::end(rewrites),
                                                  [&](Rewrite rewrite) { return rewrite(out, graph, node); });
    if (!rewritten) out.keep(std::move(node));
    changed |= rewritten;
  }
  return changed;
}

class ResultsFirst {
 public:
  explicit ResultsFirst(const Graph& graph)
      : nodes_(graph.nodes), made_by_(producers(graph)), movable_(read_once(graph)) {}

  const Node& node(std::size_t n) const { return nodes_[n]; }

  // Do the quantised values of `rescale` come out of convolutions, with something between?
  bool moves(const Graph& graph, const Node& rescale) const {
    const Node* before = maker(rescale.inputs[0]);
    return before && moved_over(*before) &&
           from_convolutions(graph, rescale.inputs[0], rescale.attrs.get_or("per_channel", false));
  }

  // `v`, rescaled where it comes from; `to` is the RESCALE's result.
  ValueId rescaled(Rewriter& out, Graph& graph, const Node& rescale, ValueId v, ValueId to) const {
    const TensorType type = graph[rescale.outputs[0]].type.with(graph[v].type.shape);
    const Node* before = maker(v);
    if (!moved_over(*before)) {
      auto inputs = rescale.inputs;
      inputs[0] = v;
      for (std::size_t i = 1; i < 3; ++i) inputs[i] = along_channels(graph, inputs[i], last_dim(graph, v));
      return out.add(rescale.op, inputs, rescale.attrs, type, rescale.loc, to);
    }
    auto inputs = before->inputs;
    for (std::size_t i = 0; i < tensors(*before); ++i) inputs[i] = rescaled(out, graph, rescale, inputs[i], no_value);
    return out.add(before->op, inputs, before->attrs, type, before->loc, to);
  }

 private:
  const Node* maker(ValueId v) const {
    return v < made_by_.size() && made_by_[v] >= 0 ? &nodes_[static_cast<std::size_t>(made_by_[v])] : nullptr;
  }
  static bool moved_over(const Node& node) {
    return node.op == tosa::op::reshape || node.op == tosa::op::slice || node.op == tosa::op::concat;
  }
  static std::int64_t last_dim(const Graph& graph, ValueId v) {
    const Shape& shape = graph[v].type.shape;
    return shape.rank() ? shape.size(shape.rank() - 1) : 1;
  }
  // A factor or shift per channel, again for each group of channels that a reshape made pixels of.
  static ValueId along_channels(Graph& graph, ValueId v, std::int64_t channels) {
    const Value value = graph[v];
    const std::int64_t had = value.type.shape.elements();
    if (had <= 1 || had == channels) return v;
    std::vector<std::byte> again;
    for (std::int64_t i = 0; i < channels / had; ++i)
      again.insert(again.end(), value.constant.data(), value.constant.data() + value.constant.size());
    return graph.add_value(value.name, value.type.with(Shape{channels}), Bytes::of(std::move(again)));
  }
  static std::size_t tensors(const Node& node) { return node.op == tosa::op::concat ? node.inputs.size() : 1; }

  // A RESCALE per channel goes along the last dim: that stays as it is, or a reshape makes pixels of groups of
  // channels.
  bool from_convolutions(const Graph& graph, ValueId v, bool per_channel) const {
    const Node* before = maker(v);
    if (!before) return false;
    if (before->op == tosa::op::conv2d || before->op == tosa::op::depthwise_conv2d) return true;
    if (!moved_over(*before) || !movable_[v]) return false;
    const std::int64_t to = last_dim(graph, v);
    for (std::size_t i = 0; i < tensors(*before); ++i) {
      const std::int64_t from = last_dim(graph, before->inputs[i]);
      const bool kept = from == to || (before->op == tosa::op::reshape && from % to == 0);
      if ((per_channel && !kept) || !from_convolutions(graph, before->inputs[i], per_channel)) return false;
    }
    return true;
  }

  const std::vector<Node> nodes_;
  const std::vector<std::int32_t> made_by_;
  const std::vector<char> movable_;
};

// Made of constants alone.
bool will_be_constant(const Graph& graph, const std::vector<std::int32_t>& made_by, ValueId v) {
  if (graph[v].is_constant()) return true;
  if (made_by[v] < 0) return false;
  const auto& inputs = graph.nodes[static_cast<std::size_t>(made_by[v])].inputs;
  return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
    return input == no_value || will_be_constant(graph, made_by, input);
  });
}

// 48-bit sums can only be rescaled: not cut, not joined. The RESCALE that reads them goes into the trial, too, for
// results_before_views to move.
bool with_rescale_of_sums(const tosa::View& view, Graph& scratch) {
  const Node& sums = scratch.nodes.back();
  if (sums.outputs.empty() || scratch[sums.outputs[0]].type.dtype != DType::i48) return true;
  const ValueId read = view.node().outputs[0];
  const Graph& graph = view.graph();
  for (const Node& node : graph.nodes) {
    if (node.op != tosa::op::rescale || node.inputs[0] != read) continue;
    Node rescale = node;
    rescale.inputs[0] = sums.outputs[0];
    for (std::size_t i = 1; i < rescale.inputs.size(); ++i) {
      const Value& operand = graph[node.inputs[i]];
      if (!operand.is_constant()) return false;
      rescale.inputs[i] = scratch.add_value(operand.name, operand.type, operand.constant);
    }
    rescale.outputs[0] = scratch.add_value("rescaled", graph[node.outputs[0]].type);
    scratch.outputs.push_back(rescale.outputs[0]);
    scratch.nodes.push_back(std::move(rescale));
    return true;
  }
  return false;
}

}  // namespace

void results_before_views(Graph& graph) {
  const ResultsFirst results(graph);
  Rewriter out(graph);
  for (std::size_t n = 0; n < out.nodes().size(); ++n) {
    const Node& node = results.node(n);
    if (node.op == tosa::op::rescale && results.moves(graph, node))
      results.rescaled(out, graph, node, node.inputs[0], node.outputs[0]);
    else
      out.keep(std::move(out.nodes()[n]));
  }
  drop_dead(graph);
}

void express(Graph& graph, NativeCheck native) {
  bool changed = false;
  for (int round = 0; round < most_rounds && one_round(graph, native); ++round) changed = true;
  if (changed) results_before_views(graph);
}

bool will_be_constant(const tosa::View& view, std::size_t operand) {
  return !view.constant(operand).null() ||
         will_be_constant(view.graph(), producers(view.graph()), view.node().inputs[operand]);
}

tosa::Check expressible(const tosa::View& view, NativeCheck native) {
  tosa::Check why = native(view);
  if (!why) return why;
  Graph scratch;
  Node node = view.node();
  const auto made_by = producers(view.graph());
  for (std::size_t i = 0; i < view.inputs(); ++i) {
    if (node.inputs[i] == no_value) continue;
    Bytes constant = view.constant(i);
    // A trial leaves large weights as they are stored; any numbers will do in their place.
    if (constant.null() && will_be_constant(view.graph(), made_by, node.inputs[i]))
      constant = Bytes::of(std::vector<std::byte>(view.in(i).storage_bytes()));
    node.inputs[i] = scratch.add_value("operand", view.in(i), std::move(constant));
  }
  for (ValueId& v : node.outputs)
    if (v != no_value) v = scratch.add_value("result", view.graph()[v].type);
  if (!node.regions.empty()) return why;
  scratch.nodes.push_back(std::move(node));
  if (!with_rescale_of_sums(view, scratch)) return why;
  express(scratch, native);
  for (const Node& n : scratch.nodes) {
    const bool cuts_sums = n.op != tosa::op::rescale && !n.inputs.empty() && n.inputs[0] != no_value &&
                           scratch[n.inputs[0]].type.dtype == DType::i48;
    if (cuts_sums || native(tosa::View(scratch, n))) return why;
  }
  return std::nullopt;
}

// ---- words

ValueId Words::slice(ValueId x, int axis, std::int64_t start, std::int64_t size) {
  Ints starts(static_cast<std::size_t>(type(x).rank()), 0), sizes = type(x).shape.sizes();
  if (sizes[static_cast<std::size_t>(axis)] == size) return x;
  starts[static_cast<std::size_t>(axis)] = start;
  sizes[static_cast<std::size_t>(axis)] = size;
  return out.slice(x, starts, sizes, loc);
}

ValueId Words::concat(const std::vector<ValueId>& parts, int axis, ValueId to) {
  if (parts.size() == 1 && to == no_value) return parts[0];
  Shape shape = type(parts[0]).shape;
  shape.set(axis, 0);
  for (ValueId p : parts) shape.set(axis, shape[axis] + type(p).shape[axis]);
  return out.add(tosa::op::concat, parts, {{"axis", std::int64_t{axis}}}, type(parts[0]).with(shape), loc, to);
}

ValueId Words::pad(ValueId x, int axis, std::int64_t before, std::int64_t after, ValueId value) {
  if (before == 0 && after == 0) return x;
  Ints pads(static_cast<std::size_t>(2 * type(x).rank()), 0);
  pads[static_cast<std::size_t>(2 * axis)] = before;
  pads[static_cast<std::size_t>(2 * axis + 1)] = after;
  Shape shape = type(x).shape;
  shape.set(axis, shape[axis] + before + after);
  return out.add(tosa::op::pad, {x, integers(DType::shape, pads), value}, {}, type(x).with(shape), loc);
}

ValueId Words::integers(DType dtype, const Ints& values) {
  return graph.add_value("npu", {dtype, Shape{static_cast<std::int64_t>(values.size())}, {}},
                         constant_bytes(dtype, values));
}

ValueId Words::rescale(ValueId x, DType to, std::int64_t multiplier, std::int64_t shift, ValueId input_zp,
                       ValueId output_zp, ValueId result) {
  Attrs attrs;
  attrs.set("scale32", true);
  attrs.set("rounding_mode", std::string("single_round"));
  attrs.set("per_channel", false);
  attrs.set("input_unsigned", false);
  attrs.set("output_unsigned", false);
  const TensorType made{to, type(x).shape, {}};
  return out.add(tosa::op::rescale,
                 {x, integers(DType::i32, {multiplier}), integers(DType::i8, {shift}), input_zp, output_zp},
                 std::move(attrs), made, loc, result);
}

ValueId Words::sum(ValueId x, int axis) {
  Shape shape = type(x).shape;
  shape.set(axis, 1);
  return out.add(tosa::op::reduce_sum, {x}, {{"axis", std::int64_t{axis}}}, type(x).with(shape), loc);
}

ValueId Words::every(ValueId x, int axis, std::int64_t step) {
  if (step == 1) return x;
  const Shape s = type(x).shape;
  std::int64_t outer = 1, inner = 1;  // the dims before `axis`; those between it and the channels
  for (int d = 0; d < axis; ++d) outer *= s.size(d);
  for (int d = axis + 1; d < s.rank() - 1; ++d) inner *= s.size(d);
  const std::int64_t kept = s.size(axis) / step, channels = s.size(s.rank() - 1);
  const ValueId groups = reshape(x, {1, outer * kept, step * inner, channels});
  Ints dims = s.sizes();
  dims[static_cast<std::size_t>(axis)] = kept;
  return reshape(slice(groups, 2, 0, inner), dims);
}

std::optional<Ints> weights_of(const Graph& graph, const Node& node) {
  return tosa::View(graph, node).constant_integers(1);
}

}  // namespace tosaic::ethos_u
