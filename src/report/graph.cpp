// SPDX-License-Identifier: Apache-2.0
#include "report/graph.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/extent.h"
#include "ir/lines_about.h"
#include "ir/provenance.h"

namespace tosaic::reporting {
namespace {

constexpr std::uint32_t unseen = 0xffffffffu;

ShownScales shown_scales(const TensorType& type) {
  const Scales& from = *type.scales;
  const IntegerRange integers = quantised_range(type);
  ShownScales to;
  to.channels = from.scale.size();
  to.zero_point = from.zero_point.empty() ? 0 : from.zero_point[0];
  if (from.scale.empty()) return to;
  const auto [least, most] = std::ranges::minmax(from.scale);
  to.scale = least;
  to.largest_scale = most;
  for (std::size_t c = 0; c < from.scale.size(); ++c) {
    const std::int64_t zero = from.zero_point.empty() ? 0 : from.zero_point[std::min(c, from.zero_point.size() - 1)];
    const auto real = [&](std::int64_t q) { return from.scale[c] * static_cast<double>(q - zero); };
    to.lowest_real = c ? std::min(to.lowest_real, real(integers.lowest)) : real(integers.lowest);
    to.highest_real = c ? std::max(to.highest_real, real(integers.highest)) : real(integers.highest);
  }
  return to;
}

// "1x8x8x3xi8": scales have members of their own.
std::string plain_type(const TensorType& type) { return to_string(type.with(std::optional<Scales>())); }

ShownValue shown_value(const Value& value) {
  ShownValue to{.name = value.name,
                .type = plain_type(value.type),
                .bytes = most_bytes(value.type),
                .is_constant = value.is_constant(),
                .scales = {}};
  if (value.type.scales) to.scales = shown_scales(value.type);
  return to;
}

ShownNode shown_node(const Graph& graph, const Node& node) {
  ShownNode to;
  if (!node.outputs.empty() && node.outputs[0] != no_value) to.name = graph[node.outputs[0]].name;
  to.op = node.op.text();
  to.text = attributes_of(node);
  if (!node.loc) return to;
  to.module = node.loc->module_path;
  to.module_type = node.loc->module_type.substr(node.loc->module_type.rfind('.') + 1);
  to.place = place_text(node.loc);
  to.source = node.loc->place.text;
  for (std::string_view name : exported_names(*node.loc)) to.exported.emplace_back(name);
  return to;
}

class Shower {
 public:
  explicit Shower(const Graph& graph) : graph_(graph), index_(graph.values.size(), unseen) {}

  ShownGraph all(const std::string& name, ShownGraph::Kind kind) {
    to_.name = name;
    to_.kind = kind;
    to_.inputs = indices(graph_.inputs);
    for (const Node& node : graph_.nodes) {
      ShownNode shown = shown_node(graph_, node);
      shown.inputs = indices(node.inputs);
      shown.outputs = indices(node.outputs);
      to_.nodes.push_back(std::move(shown));
    }
    to_.outputs = indices(graph_.outputs);
    return std::move(to_);
  }

 private:
  std::vector<std::uint32_t> indices(const std::vector<ValueId>& ids) {
    std::vector<std::uint32_t> list;
    for (ValueId v : ids) {
      if (v == no_value) continue;
      if (index_[v] == unseen) {
        index_[v] = static_cast<std::uint32_t>(to_.values.size());
        to_.values.push_back(shown_value(graph_[v]));
      }
      list.push_back(index_[v]);
    }
    return list;
  }

  const Graph& graph_;
  std::vector<std::uint32_t> index_;
  ShownGraph to_;
};

void add_bodies(const Graph& graph, const std::string& name, ShownGraph::Kind kind, std::vector<ShownGraph>& to) {
  for (const Node& node : graph.nodes)
    for (const Graph& body : node.regions) {
      const std::string called = fmt::format("{}: {} of {}", name, body.name, node.op.text());
      to.push_back(Shower(body).all(called, kind));
      add_bodies(body, called, kind, to);
    }
}

}  // namespace

std::uint64_t most_bytes(const TensorType& type) {
  const std::optional<Shape> upper = type.shape.upper();
  return upper ? type.with(*upper).storage_bytes() : 0;
}

std::vector<ShownGraph> shown(const Graph& graph, const std::string& name, ShownGraph::Kind kind) {
  std::vector<ShownGraph> all;
  all.push_back(Shower(graph).all(name, kind));
  add_bodies(graph, name, kind, all);
  return all;
}

}  // namespace tosaic::reporting
