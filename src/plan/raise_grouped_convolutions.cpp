// SPDX-License-Identifier: Apache-2.0
#include "plan/raise_grouped_convolutions.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/extent.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"
#include "plan/expression.h"
#include "plan/uses.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

constexpr int channels_dim = 3;

// What makes one operand of a CONCAT: a slice of channels, which may have been turned after it, their convolution, and
// what finishes that, by their numbers.
struct ConvolvedGroup {
  std::uint32_t slice = 0, convolution = 0;
  std::optional<std::uint32_t> turn;  // a TRANSPOSE
  std::vector<std::uint32_t> finish;
};

Bytes joined(const std::vector<Bytes>& parts) {
  std::size_t size = 0;
  for (const Bytes& part : parts) size += part.size();
  std::byte* to = nullptr;
  Bytes all = Bytes::fresh(size, to);
  for (const Bytes& part : parts) to = std::copy_n(part.data(), part.size(), to);
  return all;
}

// So many times the same element, where there is one.
Bytes repeated(const Bytes& elements, std::size_t size, std::int64_t count) {
  if (elements.size() != size || count == 1) return elements;
  return joined(std::vector<Bytes>(static_cast<std::size_t>(count), elements));
}

class RaiseGroups {
 public:
  RaiseGroups(Graph& graph, const std::function<bool(const Graph&, const Node&)>& takes,
              std::span<const ValueId> observed)
      : graph_(graph),
        takes_(takes),
        uses_(graph, observed),
        gone_(graph.nodes.size(), false),
        instead_(graph.nodes.size()) {}

  bool run() {
    for (std::uint32_t n = 0; n < gone_.size(); ++n)
      if (graph_.nodes[n].op == tosa::op::concat) raise(n);
    if (!changed_) return false;
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < gone_.size(); ++n) {
      std::ranges::move(instead_[n], std::back_inserter(nodes));
      if (!gone_[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
    return true;
  }

 private:
  const Node& node(std::uint32_t n) const { return graph_.nodes[n]; }
  const TensorType& type(ValueId v) const { return graph_[v].type; }
  ValueId operand(std::uint32_t n, std::size_t i) const { return node(n).inputs[i]; }

  // The node that makes it for `reader` alone.
  std::optional<std::uint32_t> maker_for(ValueId v, std::uint32_t reader) const {
    if (uses_.producer[v] < 0 || uses_.only_user(v) != reader) return std::nullopt;
    return static_cast<std::uint32_t>(uses_.producer[v]);
  }

  // Elementwise, of one tensor and constants.
  bool finishes(const Node& n) const {
    const tosa::Op* op = tosa::find(n.op);
    return op && op->elementwise && !is_view(n) && walked_operands(*op) == 1 && n.outputs.size() == 1 &&
           uses_.only_first_computed(n);
  }

  std::optional<ConvolvedGroup> group_before(ValueId v, std::uint32_t concat) const {
    ConvolvedGroup group;
    auto n = maker_for(v, concat);
    for (; n && node(*n).op != tosa::op::conv2d; n = maker_for(operand(*n, 0), *n)) {
      if (!finishes(node(*n))) return std::nullopt;
      group.finish.insert(group.finish.begin(), *n);
    }
    if (!n || !uses_.only_first_computed(node(*n))) return std::nullopt;
    group.convolution = *n;
    auto slice = maker_for(operand(*n, 0), *n);
    if (slice && node(*slice).op == tosa::op::transpose) {
      group.turn = slice;
      slice = maker_for(operand(*slice, 0), *slice);
    }
    if (!slice || node(*slice).op != tosa::op::slice) return std::nullopt;
    group.slice = *slice;
    return group;
  }

  bool same_constant(ValueId a, ValueId b) const {
    return a == b || (type(a).dtype == type(b).dtype && type(a).shape == type(b).shape &&
                      graph_[a].constant == graph_[b].constant);
  }
  // Of the same operator, attributes and results; constants but those in `own` are equal.
  bool alike(std::uint32_t a, std::uint32_t b, std::initializer_list<std::size_t> own) const {
    const Node &x = node(a), &y = node(b);
    if (x.op != y.op || x.attrs != y.attrs || x.inputs.size() != y.inputs.size() ||
        type(x.outputs[0]).dtype != type(y.outputs[0]).dtype || type(x.outputs[0]).shape != type(y.outputs[0]).shape)
      return false;
    for (std::size_t i = 1; i < x.inputs.size(); ++i) {
      const bool differs = std::ranges::find(own, i) != own.end();
      if (!differs && !same_constant(x.inputs[i], y.inputs[i])) return false;
      if (differs && type(x.inputs[i]).dtype != type(y.inputs[i]).dtype) return false;
    }
    return true;
  }
  bool alike(const ConvolvedGroup& a, const ConvolvedGroup& b) const {
    using namespace extension::grouped_conv2d;
    const auto finish_alike = [&](std::uint32_t x, std::uint32_t y) {
      return node(x).op == tosa::op::rescale ? alike(x, y, {1, 2}) : alike(x, y, {});
    };
    const bool turned_alike = a.turn && b.turn ? alike(*a.turn, *b.turn, {}) : a.turn == b.turn;
    return turned_alike && alike(a.convolution, b.convolution, {weight, bias}) &&
           type(operand(a.convolution, weight)).shape == type(operand(b.convolution, weight)).shape &&
           std::ranges::equal(a.finish, b.finish, finish_alike);
  }

  // Which dim of what is sliced has the channels.
  int sliced_dim(const ConvolvedGroup& group) const {
    if (!group.turn) return channels_dim;
    return static_cast<int>(node(*group.turn).attrs.get<std::vector<std::int64_t>>("perms").back());
  }
  // The first channel, where the slices are neighbours along the channels, and alike in all other dims.
  std::optional<std::int64_t> first_channel(const std::vector<ConvolvedGroup>& groups) const {
    std::optional<std::vector<std::int64_t>> first;
    const ValueId from = operand(groups[0].slice, 0);
    const Shape& part = type(node(groups[0].slice).outputs[0]).shape;
    const int dim = sliced_dim(groups[0]);
    const Dim own = part[dim];
    if (!own.is_number()) return std::nullopt;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const tosa::View slice(graph_, node(groups[g].slice));
      auto start = slice.constant_integers(1);
      if (operand(groups[g].slice, 0) != from || slice.out().shape != part || !start || !slice.constant_integers(2) ||
          slice.node().attrs.find(symbolic_start))
        return std::nullopt;
      (*start)[static_cast<std::size_t>(dim)] -= static_cast<std::int64_t>(g) * own.value();
      if (!first) first = start;
      if (*start != *first) return std::nullopt;
    }
    return (*first)[static_cast<std::size_t>(dim)];
  }

  void raise(std::uint32_t concat) {
    const Node& last = node(concat);
    if (last.inputs.size() < 2 || type(last.outputs[0]).rank() != channels_dim + 1 ||
        last.attrs.get<std::int64_t>("axis") != channels_dim)
      return;
    std::vector<ConvolvedGroup> groups;
    for (ValueId v : last.inputs) {
      auto group = group_before(v, concat);
      if (!group || (!groups.empty() && !alike(groups[0], *group))) return;
      groups.push_back(*std::move(group));
    }
    const auto first = first_channel(groups);
    if (first && takes_(graph_, node(groups[0].convolution))) replace(concat, groups, *first);
  }

  void replace(std::uint32_t concat, const std::vector<ConvolvedGroup>& groups, std::int64_t first) {
    const ValueId result = node(concat).outputs[0];
    const std::string name = graph_[result].name;
    std::vector<Node>& made = instead_[concat];
    const auto put = [&](Node made_node, const TensorType& like) {
      const ValueId v =
          graph_.add_value(name + "." + std::to_string(made.size()), {like.dtype, type(result).shape, {}});
      made_node.outputs = {v};
      made.push_back(std::move(made_node));
      return v;
    };
    const ValueId input = turned(groups, sliced(groups, first, made), made);
    ValueId at = put(convolution(groups, input, name), sums_of(groups));
    for (std::size_t f = 0; f < groups[0].finish.size(); ++f) {
      const Node& like = node(groups[0].finish[f]);
      Node finish = like.op == tosa::op::rescale ? rescale(groups, f, name) : like;
      finish.inputs[0] = at;
      at = put(std::move(finish), type(like.outputs[0]));
    }
    made.back().outputs = {result};
    for (const ConvolvedGroup& group : groups) {
      gone_[group.slice] = gone_[group.convolution] = true;
      if (group.turn) gone_[*group.turn] = true;
      for (std::uint32_t n : group.finish) gone_[n] = true;
    }
    gone_[concat] = changed_ = true;
  }

  const TensorType& sums_of(const std::vector<ConvolvedGroup>& groups) const {
    return type(node(groups[0].convolution).outputs[0]);
  }

  // What all groups read: the tensor, or one slice of it.
  ValueId sliced(const std::vector<ConvolvedGroup>& groups, std::int64_t first, std::vector<Node>& made) {
    Node slice = node(groups[0].slice);
    const int dim = sliced_dim(groups[0]);
    const TensorType all = of_all(groups, slice.outputs[0], dim);
    if (type(slice.inputs[0]).shape == all.shape) return slice.inputs[0];
    const std::string name = graph_[slice.outputs[0]].name + ".groups";
    std::vector<std::int64_t> start = *tosa::View(graph_, slice).constant_integers(1);
    start[static_cast<std::size_t>(dim)] = first;
    std::vector<std::int64_t> size = *tosa::View(graph_, slice).constant_integers(2);
    size[static_cast<std::size_t>(dim)] = all.shape.size(dim);
    slice.inputs[1] = add_constant(name + ".start", slice.inputs[1], start);
    slice.inputs[2] = add_constant(name + ".size", slice.inputs[2], size);
    slice.outputs = {graph_.add_value(name, all)};
    made.push_back(slice);
    return slice.outputs[0];
  }
  // The same with channels last.
  ValueId turned(const std::vector<ConvolvedGroup>& groups, ValueId all, std::vector<Node>& made) {
    if (!groups[0].turn) return all;
    Node turn = node(*groups[0].turn);
    const ValueId part = turn.outputs[0];
    turn.inputs[0] = all;
    turn.outputs = {graph_.add_value(graph_[part].name + ".groups", of_all(groups, part, channels_dim))};
    made.push_back(turn);
    return turn.outputs[0];
  }
  TensorType of_all(const std::vector<ConvolvedGroup>& groups, ValueId part, int dim) const {
    TensorType all{type(part).dtype, type(part).shape, {}};
    all.shape.set(dim, all.shape.size(dim) * std::ssize(groups));
    return all;
  }
  ValueId add_constant(std::string name, ValueId like, const std::vector<std::int64_t>& numbers) {
    return graph_.add_value(std::move(name), type(like),
                            constant_bytes(type(like).dtype, std::span<const std::int64_t>(numbers)));
  }

  // Operand i of all groups' nodes, one behind the other; where it is one element, so many of them for each group.
  ValueId join(const std::string& name, const std::vector<std::uint32_t>& nodes, std::size_t i, std::int64_t own) {
    std::vector<Bytes> parts;
    const TensorType first = type(operand(nodes[0], i));
    for (std::uint32_t n : nodes) {
      const bool one = first.rank() == 1 && type(operand(n, i)).shape.size(0) == 1;
      const Bytes& elements = graph_[operand(n, i)].constant;
      parts.push_back(one ? repeated(elements, storage_size(first.dtype), own) : elements);
    }
    TensorType all{first.dtype, first.shape, {}};
    all.shape.set(0, own * std::ssize(nodes));
    return graph_.add_value(name, std::move(all), joined(parts));
  }
  static std::vector<std::uint32_t> convolutions(const std::vector<ConvolvedGroup>& groups) {
    std::vector<std::uint32_t> nodes;
    for (const ConvolvedGroup& group : groups) nodes.push_back(group.convolution);
    return nodes;
  }
  std::int64_t out_channels(const std::vector<ConvolvedGroup>& groups) const {
    return sums_of(groups).shape.size(channels_dim);
  }

  Node convolution(const std::vector<ConvolvedGroup>& groups, ValueId input, const std::string& name) {
    using namespace extension::grouped_conv2d;
    const std::vector<std::uint32_t> nodes = convolutions(groups);
    Node all = node(nodes[0]);
    all.op = extension::op::grouped_conv2d;
    all.inputs[0] = input;
    all.inputs[weight] = join(name + ".weights", nodes, weight, out_channels(groups));
    all.inputs[bias] = join(name + ".biases", nodes, bias, out_channels(groups));
    return all;
  }

  // Of channels that have numbers of their own; or of all alike.
  Node rescale(const std::vector<ConvolvedGroup>& groups, std::size_t f, const std::string& name) {
    std::vector<std::uint32_t> nodes;
    for (const ConvolvedGroup& group : groups) nodes.push_back(group.finish[f]);
    Node all = node(nodes[0]);
    const bool equal = std::ranges::all_of(nodes, [&](std::uint32_t n) {
      return same_constant(operand(n, 1), operand(nodes[0], 1)) && same_constant(operand(n, 2), operand(nodes[0], 2));
    });
    if (equal && !all.attrs.get<bool>("per_channel")) return all;
    all.attrs.set("per_channel", true);
    all.inputs[1] = join(name + ".multipliers", nodes, 1, out_channels(groups));
    all.inputs[2] = join(name + ".shifts", nodes, 2, out_channels(groups));
    return all;
  }

  Graph& graph_;
  const std::function<bool(const Graph&, const Node&)>& takes_;
  const Uses uses_;  // of the graph as it was: nodes stay in their places until the end
  std::vector<bool> gone_;
  std::vector<std::vector<Node>> instead_;  // by the node that they stand for
  bool changed_ = false;
};

}  // namespace

bool raise_grouped_convolutions(Graph& graph, const std::function<bool(const Graph& graph, const Node& node)>& takes,
                                std::span<const ValueId> observed) {
  return RaiseGroups(graph, takes, observed).run();
}

}  // namespace tosaic::plan
