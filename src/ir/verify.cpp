// SPDX-License-Identifier: Apache-2.0
// The structure that every graph must have, whatever its operators mean.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/graph.h"
#include "ir/marks.h"
#include "ir/text.h"

namespace tosaic {
namespace text {
namespace {

std::optional<std::string> shape_problem(const Shape& shape) {
  // Element counts stay far enough below 2^63 that byte counts cannot overflow.
  constexpr std::int64_t most_elements = std::int64_t{1} << 58;
  std::int64_t elements = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const Bounds bounds = shape[i].bounds();
    if (bounds.highest && *bounds.highest < 0)
      return fmt::format("dimension {} is negative ({})", i, ranged_text(shape[i]));
    // How many elements a shape without bounds has is checked when its sizes are known.
    const std::int64_t dim = bounds.highest.value_or(1);
    if (dim > 1 && elements > most_elements / dim) return "the number of elements overflows";
    elements *= dim > 1 ? dim : 1;
  }
  return std::nullopt;
}

std::optional<std::string> scales_problem(const Scales& scales, const Shape& shape) {
  if (scales.scale.size() != scales.zero_point.size())
    return fmt::format("{} scales and {} zero points", scales.scale.size(), scales.zero_point.size());
  if (scales.axis < -1 || scales.axis >= shape.rank())
    return fmt::format("scales along axis {} of a tensor of rank {}", scales.axis, shape.rank());
  const auto have = static_cast<std::int64_t>(scales.scale.size());
  const auto known = [&](int axis) { return axis >= shape.rank() || shape[axis].is_number(); };
  if (!scales.per_tensor() && !known(scales.axis)) return "scales along a symbolic dimension";
  const std::int64_t wanted = scales.per_tensor() ? 1 : shape.size(scales.axis);
  // Channels may be split over two neighbouring dims, as in depthwise weights (HWCM).
  const bool split = !scales.per_tensor() && scales.axis + 1 < shape.rank() && known(scales.axis + 1) &&
                     have == wanted * shape.size(scales.axis + 1);
  if (have != wanted && !split) return fmt::format("{} scales where {} are needed", scales.scale.size(), wanted);
  for (double s : scales.scale)
    if (!(std::isfinite(s) && s > 0)) return fmt::format("scale {} is not a positive number", s);
  if (scales.lowest > scales.highest)
    return fmt::format("the quantised values {}..{} are an empty range", scales.lowest, scales.highest);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> type_problem(const TensorType& type) {
  if (auto problem = shape_problem(type.shape)) return problem;
  if (type.scales) return scales_problem(*type.scales, type.shape);
  return std::nullopt;
}

}  // namespace text

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : g_(graph), defined_(graph.values.size(), 0) {}

  Status run(int depth) {
    if (depth > text::max_nesting)
      return error("ir.nesting", fmt::format("graphs are nested more than {} deep", text::max_nesting));
    TOSAIC_CHECK(values());
    TOSAIC_CHECK(entries());
    for (const Node& node : g_.nodes) {
      Status status = check_node(node, depth);
      if (!status) return located(std::move(status).error(), node.loc);
    }
    for (ValueId v : g_.outputs) TOSAIC_CHECK(use(v, "an output of the graph"));
    for (const State& s : g_.states) {
      TOSAIC_CHECK(use(s.input, fmt::format("state '{}'", s.name)));
      TOSAIC_CHECK(use(s.output, fmt::format("state '{}'", s.name)));
      // Content that depends on scales or shape must mean the same in the next run.
      if (!(g_[s.input].type == g_[s.output].type))
        return error("ir.state", fmt::format("state '{}' is read as {} and written as {}", s.name,
                                             to_string(g_[s.input].type), to_string(g_[s.output].type)));
    }
    for (std::size_t v = 0; v < defined_.size(); ++v)
      if (!defined_[v])
        return error(
            "ir.undefined-value",
            fmt::format("value '{}' is neither an input, nor a constant, nor a node's result", g_.values[v].name));
    return {};
  }

 private:
  Status values() {
    std::unordered_set<std::string_view> names;
    for (const Value& value : g_.values) {
      if (!names.insert(value.name).second)
        return error("ir.duplicate-name", fmt::format("two values are named '{}'", value.name));
      if (auto problem = text::type_problem(value.type))
        return error("ir.type", fmt::format("value '{}' has an impossible type: {}", value.name, *problem));
      if (value.is_constant() && !value.type.shape.is_static())
        return error("ir.constant-size",
                     fmt::format("constant '{}' of type {} has no certain size", value.name, to_string(value.type)));
      if (value.is_constant() && value.constant.size() != value.type.storage_bytes())
        return error("ir.constant-size",
                     fmt::format("constant '{}' of type {} needs {} bytes and has {}", value.name,
                                 to_string(value.type), value.type.storage_bytes(), value.constant.size()));
    }
    return {};
  }

  Status entries() {
    for (ValueId v : g_.inputs) TOSAIC_CHECK(define(v, "an input of the graph"));
    for (ValueId v = 0; v < g_.values.size(); ++v)
      if (g_[v].is_constant()) TOSAIC_CHECK(define(v, "a constant"));
    std::unordered_set<std::string_view> names;
    std::unordered_set<ValueId> inputs;
    for (const State& s : g_.states) {
      if (!names.insert(s.name).second)
        return error("ir.duplicate-name", fmt::format("two states are named '{}'", s.name));
      if (s.input >= g_.values.size()) return bad_id(s.input, fmt::format("state '{}'", s.name));
      if (!inputs.insert(s.input).second)
        return error("ir.state",
                     fmt::format("state '{}' shares its input '{}' with another state", s.name, g_[s.input].name));
      if (g_[s.input].is_constant())
        return error("ir.state",
                     fmt::format("state '{}' is read from '{}', which is a constant", s.name, g_[s.input].name));
      if (std::find(g_.inputs.begin(), g_.inputs.end(), s.input) != g_.inputs.end())
        return error("ir.state",
                     fmt::format("state '{}' is read from '{}', which is an input", s.name, g_[s.input].name));
      const TensorType& type = g_[s.input].type;
      if (!s.initial.null() && (!type.shape.is_static() || s.initial.size() != type.storage_bytes()))
        return error("ir.constant-size", fmt::format("state '{}' of type {} cannot begin with {} bytes", s.name,
                                                     to_string(type), s.initial.size()));
      defined_[s.input] = 1;
    }
    return {};
  }

  Status check_node(const Node& node, int depth) {
    if (node.op.none()) return error("ir.node", "a node has no operator");
    for (ValueId v : node.inputs)
      if (v != no_value) TOSAIC_CHECK(use(v, "an operand of " + node.op.text()));
    std::unordered_set<std::string_view> names;
    for (const auto& [name, attr] : node.attrs)
      if (!names.insert(name).second)
        return error("ir.duplicate-name", fmt::format("{} has the attribute '{}' twice", node.op, name));
    if (auto problem = marks_problem(node)) return error("ir.node", *problem);
    for (const Graph& region : node.regions) TOSAIC_CHECK(Verifier(region).run(depth + 1));
    for (ValueId v : node.outputs)
      if (v != no_value) TOSAIC_CHECK(define(v, "a result of " + node.op.text()));
    return {};
  }

  Status define(ValueId v, const std::string& as) {
    if (v >= g_.values.size()) return bad_id(v, as);
    if (defined_[v])
      return error("ir.redefined-value", fmt::format("value '{}' is defined again as {}", g_[v].name, as));
    defined_[v] = 1;
    return {};
  }
  Status use(ValueId v, const std::string& as) const {
    if (v >= g_.values.size()) return bad_id(v, as);
    if (!defined_[v])
      return error("ir.undefined-value", fmt::format("value '{}' is used as {} before it is defined", g_[v].name, as));
    return {};
  }
  Status bad_id(ValueId v, const std::string& as) const {
    return error("ir.value-id", fmt::format("{} is value {}, the graph has {}", as,
                                            v == no_value ? "none" : std::to_string(v), g_.values.size()));
  }

  const Graph& g_;
  std::vector<char> defined_;
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(1); }

}  // namespace tosaic
