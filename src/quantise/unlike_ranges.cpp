// SPDX-License-Identifier: Apache-2.0
#include "quantise/unlike_ranges.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cpu/cpu.h"
#include "ir/program_operators.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "quantise/observable.h"
#include "quantise/observe.h"

namespace tosaic {
namespace {

constexpr double unlike_widths = 16;       // of 8 bits, 4 are left to the smaller operands
constexpr double unlike_for_others = 4;    // what else reads the smaller operand would miss two bits of it
constexpr double masked = 256;             // of 8 bits, none is left to what a mask covers
constexpr std::size_t enough_samples = 8;  // to tell ranges that differ so much

// Concatenates its operands: a joined operator over a list of tensors.
bool concatenates(const Node& node) {
  FoundOp found = find_aten(node.op);
  return found.rule->joins_operands && !found.schema->arguments.empty() &&
         found.schema->arguments[0].type.starts_with("Tensor[]");
}

// Takes each element from one of two or more computed tensors (where, maximum, slice_scatter).
bool chooses(const Graph& graph, const Node& node) {
  return find_aten(node.op).rule->joins_operands && node.outputs.size() == 1 && node.outputs[0] != no_value &&
         std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
           return v != no_value && !graph[v].is_constant() && graph[v].type.dtype == DType::f32;
         }) > 1;
}

// A constant of zeros and numbers that dwarf others: added, it masks.
bool masking(const Value& v) {
  if (!v.is_constant() || v.type.dtype != DType::f32) return false;
  const auto x = v.constant.as<float>();
  return std::find(x.begin(), x.end(), 0.0f) != x.end() &&
         std::any_of(x.begin(), x.end(), [](float value) { return std::fabs(value) >= 1000; });
}

// Chooses, place by place, among its operands and numbers (where, masked_fill), or adds a mask.
bool masks(const Graph& graph, const Node& node) {
  const Rule rule = find_aten(node.op).rule;
  if (concatenates(node) || node.outputs.size() != 1 || node.outputs[0] == no_value ||
      graph[node.outputs[0]].type.dtype != DType::f32)
    return false;
  const auto any = [&](auto holds) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return v != no_value && holds(graph[v]); });
  };
  if (rule->adds) return any(masking);
  return rule->joins_operands && any([](const Value& v) { return v.type.dtype == DType::boolean; });
}

double width(const Range& range) { return range.highest - range.lowest; }

// What is not needed to compute `watched` goes.
void end_with(const std::vector<ValueId>& watched, Graph& graph) {
  graph.outputs = watched;
  drop_dead_nodes(graph);
  std::vector<char> read(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value) read[v] = 1;
  std::erase_if(graph.outputs, [&](ValueId v) { return read[v] != 0; });  // not kept to the end
}

struct Looks {
  std::map<ValueId, Range> ranges;
  std::map<ValueId, bool> infinite;
};

// The ranges of all operands and results of `nodes` in the float program.
Result<Looks> look_at(const Graph& graph, const std::vector<std::size_t>& nodes,
                      const std::vector<std::vector<Tensor>>& samples, int threads) {
  std::vector<char> hidden;  // what cannot be run is told where it is calibrated
  TOSAIC_TRY(Lowered lowered, lower_observable(graph, hidden, {}));
  Looks looks;
  auto& ranges = looks.ranges;
  std::map<ValueId, std::vector<ValueId>> watched;  // TOSA value -> operands, results
  ThreadPool alone(1);
  for (std::size_t n : nodes) {
    std::vector<ValueId> values = graph.nodes[n].inputs;
    values.insert(values.end(), graph.nodes[n].outputs.begin(), graph.nodes[n].outputs.end());
    for (ValueId v : values) {
      if (v == no_value || ranges.contains(v) || graph[v].type.dtype != DType::f32) continue;
      ranges[v] = graph[v].is_constant() ? range_of(graph[v].constant.as<float>(), alone) : Range{};
      if (!graph[v].is_constant() && lowered.of[v] != no_value) watched[lowered.of[v]].push_back(v);
    }
  }
  cpu::Options options{.threads = threads};
  for (const auto& [v, operands] : watched) options.observed.push_back(v);
  end_with(options.observed, lowered.graph);
  TOSAIC_TRY(cpu::Program program, cpu::Program::compile(lowered.graph, options));
  const cpu::Observer observer = [&](ValueId v, const TensorView& content, ThreadPool& pool) {
    if (content.type.dtype != DType::f32) return;
    const Range range = range_of(content.as<float>(), pool);
    const auto x = content.as<float>();
    const bool infinite = std::any_of(x.begin(), x.end(), [](float value) { return std::isinf(value); });
    for (ValueId seen : watched.at(v)) {
      ranges[seen].include(range);
      looks.infinite[seen] |= infinite;
    }
  };
  for (std::size_t s = 0; s < samples.size() && s < enough_samples; ++s) {
    auto run = program.run(samples[s], &observer);
    if (!run.ok()) return run.error();
  }
  return looks;
}

// The calls behind `node` on which its result depends nothing but the program's outputs: none computes with quantised
// values. Empty: something does.
std::vector<std::size_t> way_out(const Graph& graph, std::size_t node) {
  std::vector<char> reached(graph.values.size(), 0);
  for (ValueId v : graph.nodes[node].outputs)
    if (v != no_value) reached[v] = 1;
  std::vector<std::size_t> way{node};
  for (std::size_t n = node + 1; n < graph.nodes.size(); ++n) {
    const Node& reader = graph.nodes[n];
    if (std::none_of(reader.inputs.begin(), reader.inputs.end(),
                     [&](ValueId v) { return v != no_value && reached[v]; }))
      continue;
    const Rule rule = find_aten(reader.op).rule;
    if (rule->is_composite || (rule->has_integer_form && !rule->passes_values)) return {};
    way.push_back(n);
    for (ValueId v : reader.outputs)
      if (v != no_value) reached[v] = 1;
  }
  return way;
}

Diagnostic unlike(const Node& node, const Range& small, const Range& large, std::string note) {
  return located(warning("quantise.unlike-ranges",
                         fmt::format("{} combines tensors of unlike ranges, [{:.3g}, {:.3g}] and [{:.3g}, {:.3g}]",
                                     node.op, small.lowest, small.highest, large.lowest, large.highest))
                     .note(std::move(note)),
                 node.loc);
}

// Of the elements that mean something. Those that no mask covers are taken to reach as far on its side as on the other.
Range unmasked(const Range& seen, const Range& meant) {
  const bool below = seen.lowest < meant.lowest;
  const bool above = meant.highest < seen.highest;
  Range range{std::max(seen.lowest, meant.lowest), std::min(seen.highest, meant.highest)};
  if (below && !above) range.lowest = std::max(range.lowest, -range.highest);
  if (above && !below) range.highest = std::min(range.highest, -range.lowest);
  return range;
}

// The narrowest and the widest of what a concatenation's result, or one that chooses, is made of. `range_of_operand`
// gives nothing for what does not count.
template <class RangeOf>
std::pair<Range, Range> extremes(const Graph& graph, const Node& node, const RangeOf& range_of_operand) {
  const bool concatenated = concatenates(node);
  const std::vector<char> read = read_operands(graph, node);
  std::pair<Range, Range> found;
  auto& [small, large] = found;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == no_value || !read[i] || (!concatenated && graph[v].is_constant())) continue;
    const std::optional<Range> range = range_of_operand(v);
    if (!range || !(width(*range) > 0)) continue;  // zeros are zero on any scale
    if (!(width(small) > 0) || width(*range) < width(small)) small = *range;
    if (width(*range) > width(large)) large = *range;
  }
  return found;
}

// Does something else read an operand, as the next stage of a net reads what skips to a later one, to which a scale
// that serves the widest would leave little?
template <class RangeOf>
bool leaves_others_little(const Graph& graph, const Node& node, const std::vector<std::vector<std::uint32_t>>& read_by,
                          const Range& widest, const RangeOf& range_of_operand) {
  return std::ranges::any_of(node.inputs, [&](ValueId v) {
    if (v == no_value || graph[v].is_constant() || read_by[v].size() < 2) return false;
    const std::optional<Range> range = range_of_operand(v);
    return range && width(*range) > 0 && width(widest) >= unlike_for_others * width(*range);
  });
}

// The narrowest and the widest of what the call's result is made of; constants aside.
std::pair<Range, Range> operand_ranges(const Graph& graph, const Node& node, const Saturation& saturation) {
  std::pair<Range, Range> found;
  std::vector<char> read;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == no_value || graph[v].is_constant() || graph[v].type.dtype != DType::f32) continue;
    const Range range = saturation.meaningful(v).value_or(saturation.seen(v));
    if (!(width(range) > 0)) continue;
    if (read.empty()) read = node.inputs.size() == 1 ? std::vector<char>{1} : read_operands(graph, node);
    if (!read[i]) continue;
    auto& [small, large] = found;
    if (!(width(small) > 0) || width(range) < width(small)) small = range;
    if (width(range) > width(large)) large = range;
  }
  return found;
}

// One scale would serve the call's result badly: as floats if it only leaves the program, in 16 bits, or in 8 with a
// warning.
void separate_ranges(const Graph& graph, std::size_t n, const Range& small, const Range& large,
                     const QuantiseOptions& options, UnlikeRanges& unlike_ranges) {
  const Node& node = graph.nodes[n];
  const auto say = [&](std::string note) {
    unlike_ranges.warnings.insert_or_assign(n, unlike(node, small, large, std::move(note)));
  };
  const auto way = options.float_outputs ? way_out(graph, n) : std::vector<std::size_t>{};
  if (!way.empty()) {
    for (std::size_t w : way) unlike_ranges.floats[w] = 1;
    say("the result is an output only: its operands keep their scales and are combined as floats, outside the "
        "delegate");
    return;
  }
  unlike_ranges.apart[n] = 1;
  if (options.wide_inside && may_be_wide(graph, node.outputs[0])) {
    unlike_ranges.wide[node.outputs[0]] = 1;
    say("the result takes 16 bits, its operands keep scales of their own");
  } else {
    say(fmt::format("one scale serves the result: of its 256 quantised values, {} are left to the smaller range",
                    std::max(1, static_cast<int>(255 * width(small) / width(large)))));
  }
}

// Is the call's result an output, or one but for what may be computed outside the delegate?
bool leaves(const Graph& graph, std::size_t n, const QuantiseOptions& options) {
  return std::ranges::count(graph.outputs, graph.nodes[n].outputs[0]) > 0 ||
         (options.float_outputs && !way_out(graph, n).empty());
}

// Where a mask's -1e9 or -infinity enters a result that only leaves the program, it does so as floats: the
// tensor under the mask keeps its scale, the masked positions their number.
// True: that is so, or has been said.
bool leave_masks_outside(const Graph& graph, std::size_t n, const Looks& looks, const QuantiseOptions& options,
                         UnlikeRanges& unlike_ranges, const Sink& sink) {
  const Node& node = graph.nodes[n];
  const ValueId y = node.outputs[0];
  auto result = looks.ranges.find(y);
  if (result == looks.ranges.end()) return false;
  const Range* small = nullptr;
  for (ValueId v : node.inputs) {
    auto it = v == no_value || graph[v].is_constant() ? looks.ranges.end() : looks.ranges.find(v);
    if (it == looks.ranges.end() || !(width(it->second) > 0)) continue;
    if (!small || width(it->second) < width(*small)) small = &it->second;
  }
  const auto infinite = looks.infinite.find(y);
  const bool overflows = infinite != looks.infinite.end() && infinite->second;
  if (!small || (!overflows && width(result->second) < masked * width(*small))) return false;
  if (options.float_outputs) {
    const auto way = way_out(graph, n);
    for (std::size_t w : way) unlike_ranges.floats[w] = 1;
    if (!way.empty()) return true;
  }
  if (!sink || std::find(graph.outputs.begin(), graph.outputs.end(), y) == graph.outputs.end()) return false;
  sink(located(
      warning(
          "quantise.masked-output",
          fmt::format("output '{}' holds a mask's values next to others in [{:.3g}, {:.3g}]; its quantised values {}",
                      graph[y].name, small->lowest, small->highest,
                      overflows ? "have no infinity" : "hardly distinguish these"))
          .hint("apply the mask after the model, or return the tensor without the mask"),
      node.loc));
  return true;
}

}  // namespace

void keep_scalars_float(const Graph& graph, std::vector<char>& floats) {
  std::vector<char> number(graph.values.size(), 0);
  for (ValueId v : graph.inputs) number[v] = graph[v].type.shape.elements() == 1;
  floats.resize(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool any = false, all = true;
    for (ValueId v : node.inputs) {
      if (v == no_value || graph[v].is_constant()) continue;
      any |= number[v] != 0;
      all &= number[v] != 0;
    }
    floats[n] |= any && all;
    for (ValueId v : node.outputs)
      if (v != no_value) number[v] = any && all && graph[v].type.shape.elements() == 1;
  }
}

bool may_be_wide(const Graph& graph, ValueId tensor) {
  std::vector<char> same(graph.values.size(), 0);
  same[tensor] = 1;
  for (const Node& reader : graph.nodes) {
    if (std::none_of(reader.inputs.begin(), reader.inputs.end(), [&](ValueId v) { return v != no_value && same[v]; }))
      continue;
    const Rule rule = find_aten(reader.op).rule;
    if (rule->accumulates && !(reader.inputs.size() > 1 && same[reader.inputs[0]] && reader.inputs[1] != no_value &&
                               graph[reader.inputs[1]].is_constant()))
      return false;
    if (rule->joins_operands) return false;
    if (rule->passes_values)
      for (ValueId v : reader.outputs)
        if (v != no_value) same[v] = 1;
  }
  return true;
}

Result<UnlikeRanges> find_unlike_ranges(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                                        const QuantiseOptions& options, const Sink& sink) {
  UnlikeRanges unlike_ranges(graph);
  std::vector<std::size_t> calls;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (concatenates(graph.nodes[n]) || chooses(graph, graph.nodes[n]) ||
        (masks(graph, graph.nodes[n]) && leaves(graph, n, options)))
      calls.push_back(n);
  if (calls.empty()) return unlike_ranges;
  TOSAIC_TRY(const Looks looks, look_at(graph, calls, samples, options.threads));
  const auto& ranges = looks.ranges;
  const auto read_by = consumers(graph);
  const auto seen = [&](ValueId v) {
    const auto it = ranges.find(v);
    return it == ranges.end() ? std::nullopt : std::optional(it->second);
  };
  for (std::size_t n : calls) {
    const Node& node = graph.nodes[n];
    const bool concatenated = concatenates(node), chosen = chooses(graph, node);
    const auto infinite = looks.infinite.find(node.outputs[0]);
    if (!concatenated && masks(graph, node) && (!chosen || (infinite != looks.infinite.end() && infinite->second)) &&
        leave_masks_outside(graph, n, looks, options, unlike_ranges, sink))
      continue;
    if (!concatenated && !chosen) continue;
    const auto [small, large] = extremes(graph, node, seen);
    if (concatenated && leaves_others_little(graph, node, read_by, large, seen)) unlike_ranges.apart[n] = 1;
    if (!(width(small) > 0) || width(large) < unlike_widths * width(small)) continue;
    // What the result does not keep (minimum of the larger) costs it nothing once the operands' scales are their own.
    const auto result = ranges.find(node.outputs[0]);
    if (!concatenated && result != ranges.end() && width(result->second) < unlike_widths * width(small)) {
      unlike_ranges.apart[n] = 1;
      continue;
    }
    separate_ranges(graph, n, small, large, options, unlike_ranges);
  }
  return unlike_ranges;
}

bool join_masked(const Graph& graph, const Saturation& saturation, UnlikeRanges& unlike_ranges) {
  ThreadPool alone(1);
  return std::erase_if(unlike_ranges.warnings, [&](const auto& warned) {
           const std::size_t n = warned.first;
           const Node& node = graph.nodes[n];
           const auto& meant = saturation.meaningful(node.outputs[0]);
           if (!unlike_ranges.apart[n] || !meant) return false;
           const auto [small, large] = extremes(graph, node, [&](ValueId v) -> std::optional<Range> {
             if (graph[v].type.dtype != DType::f32) return std::nullopt;
             const Range range =
                 graph[v].is_constant() ? range_of(graph[v].constant.as<float>(), alone) : saturation.seen(v);
             return unmasked(range, *meant);
           });
           if (width(small) > 0 && width(large) >= unlike_widths * width(small)) return false;
           unlike_ranges.apart[n] = 0;
           unlike_ranges.wide[node.outputs[0]] = 0;
           return true;
         }) > 0;
}

bool find_unlike_scalars(const Graph& graph, const Saturation& saturation, const QuantiseOptions& options,
                         UnlikeRanges& unlike_ranges) {
  bool any = false;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Rule rule = find_aten(node.op).rule;
    if (!rule->shares_scale() || concatenates(node) || node.outputs.size() != 1 || unlike_ranges.apart[n] ||
        unlike_ranges.floats[n] || node.outputs[0] == no_value || saturation.meaningful(node.outputs[0]))
      continue;
    const Range& result = saturation.seen(node.outputs[0]);
    const auto [small, large] = operand_ranges(graph, node, saturation);
    if (!(width(small) > 0) || !(width(result) > 0)) continue;  // zeros, or never seen
    if (width(result) >= unlike_widths * width(small)) {
      separate_ranges(graph, n, small, result, options, unlike_ranges);
      any = true;
    } else if (rule->joins_operands &&
               width(large) >= unlike_widths * width(result)) {  // it keeps the number, or little else
      unlike_ranges.apart[n] = 1;
      any = true;
    }
  }
  return any;
}

}  // namespace tosaic
