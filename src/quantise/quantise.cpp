// SPDX-License-Identifier: Apache-2.0
#include "quantise/quantise.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/parallel.h"
#include "cpu/cpu.h"
#include "lower/computed.h"
#include "lower/lower.h"
#include "quantise/observable.h"
#include "quantise/observe.h"
#include "quantise/pieces.h"
#include "quantise/row_norms.h"
#include "quantise/saturation.h"
#include "quantise/weight_codes.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// Values that share one scale: a union-find over value ids.
class Groups {
 public:
  explicit Groups(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(ValueId a, ValueId b) { parent_[find(a)] = find(b); }

 private:
  std::vector<ValueId> parent_;
};

bool real(const Value& v) { return v.type.dtype == DType::f32 && !v.type.quantised(); }

struct Plan {
  std::vector<char> coded;   // this value becomes integers
  std::vector<char> hidden;  // its own range does not count: a single reader clamps it anyway
  Groups groups;
  std::vector<std::pair<ValueId, ValueId>> chosen_from;  // (constant, the tensor of its elements): an embedding
};

// Does the node hold its input between bounds and nothing else?
bool clamps(const Graph& graph, const Node& node) {
  FoundOp found = find_aten(node.op);
  if (!found.op || found.rule != Rule::transparent) return false;
  auto trial = try_in_shape(graph, node, Shape{4});
  return trial.ok() && trial->graph.nodes.size() == 1 && trial->graph.nodes[0].op == "tosa.clamp";
}

// Weights are operand 1 of accumulating calls; what runs along output channels is the lowering's knowledge, kept
// to the two layouts that PyTorch has.
int weight_axis(const Node& node) {
  bool transposed = node.op.find("conv_transpose") != std::string::npos || node.attrs.get_or("transposed", false);
  if (!transposed) return 0;
  return node.attrs.get_or<std::int64_t>("groups", 1) == 1 ? 1 : -1;
}

// A weight per result, as in a depthwise convolution of size 1: nothing is added up.
bool one_product_each(const Graph& graph, const Node& node) {
  const ValueId w = node.inputs.size() > 1 ? node.inputs[1] : no_value;
  return w != no_value && graph[w].is_constant() && graph[w].type.rank() > 0 &&
         node.attrs.get_or<std::int64_t>("groups", 1) == graph[w].type.shape.elements();
}

Plan plan_groups(const Graph& graph, const Pieces& pieces) {
  Plan plan{std::vector<char>(graph.values.size(), 0),
            std::vector<char>(graph.values.size(), 0),
            Groups(graph.values.size()),
            {}};
  auto read_by = consumers(graph);
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    FoundOp found = find_aten(node.op);
    if (!found.op || found.rule == Rule::float_only || found.rule == Rule::inside || pieces.floats[n]) continue;
    bool any_real =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && real(graph[v]); });
    if (!any_real) continue;
    // Codes can be computed only where every computed float operand has codes.
    for (ValueId v : node.inputs)
      if (v != no_value && real(graph[v]) && !graph[v].is_constant()) plan.coded[v] = 1;
    for (ValueId v : node.outputs)
      if (v != no_value && real(graph[v])) plan.coded[v] = 1;
    if (node.outputs.empty() || node.outputs[0] == no_value || !real(graph[node.outputs[0]])) continue;
    if (found.rule == Rule::transparent) {
      ValueId x = node.inputs[0];
      if (x == no_value) continue;
      if (graph[x].is_constant()) {
        if (real(graph[x])) plan.chosen_from.emplace_back(x, node.outputs[0]);
        continue;
      }
      bool alone = read_by[x].size() == 1 && !is_output[x];
      bool clamping = clamps(graph, node);
      if (clamping && !alone) continue;  // x keeps its full range, the clamped tensor gets a finer one
      if (clamping) plan.hidden[x] = 1;
      for (ValueId v : node.outputs)
        if (v != no_value && real(graph[v])) plan.groups.join(x, v);
    } else if (found.rule == Rule::joined && !pieces.apart[n]) {
      for (ValueId v : node.inputs)
        if (v != no_value && real(graph[v]) && !graph[v].is_constant()) plan.groups.join(v, node.outputs[0]);
    }
  }
  return plan;
}

Status check_samples(const Graph& graph, const std::vector<std::vector<Tensor>>& samples) {
  if (samples.empty())
    return error("calibrate.no-samples", "an integer target needs sample inputs to choose its scales from")
        .hint("give --calibrate FILE.npz with one array per input, samples stacked along a new first axis");
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (samples[s].size() != graph.inputs.size())
      return error("calibrate.sample-count", fmt::format("sample {} has {} tensors, the model has {} inputs", s,
                                                         samples[s].size(), graph.inputs.size()));
    for (std::size_t i = 0; i < samples[s].size(); ++i) {
      const TensorType &given = samples[s][i].type, &wanted = graph[graph.inputs[i]].type;
      if (given.dtype != wanted.dtype || given.shape.dims() != wanted.shape.dims())
        return error("calibrate.sample-type",
                     fmt::format("sample {} for input '{}' is {}, the model takes {}", s, graph[graph.inputs[i]].name,
                                 to_string(given), to_string(wanted)));
    }
  }
  return {};
}

// The float program, compiled for the CPU, with a way back from its tensors to the ATen values.
struct Observed {
  cpu::Program program;
  std::map<ValueId, std::vector<ValueId>> watchers;  // TOSA value -> ATen values with the same elements
};

Result<Observed> compile_observed(const Graph& graph, Lowered lowered, const std::vector<char>& wanted, int threads) {
  Graph& tosa = lowered.graph;
  const std::size_t real_outputs = tosa.outputs.size();
  std::vector<ValueId> values;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (wanted[v] && lowered.of[v] != no_value) {
      values.push_back(v);
      tosa.outputs.push_back(lowered.of[v]);
    }
  tidy(tosa);
  // A permutation or reshape has the same elements as what it moves: look at that and let the move go.
  auto made_by = producers(tosa);
  std::map<ValueId, std::vector<ValueId>> watchers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ValueId v = tosa.outputs[real_outputs + i];
    while (made_by[v] >= 0) {
      const Node& node = tosa.nodes[static_cast<std::size_t>(made_by[v])];
      if (node.op != "tosa.transpose" && node.op != "tosa.reshape") break;
      v = node.inputs[0];
    }
    tosa.outputs[real_outputs + i] = v;
    watchers[v].push_back(values[i]);
  }
  // Drop the moves that only the observer needed, keeping ids stable by naming them in `outputs` meanwhile.
  std::vector<ValueId> watched(tosa.outputs.begin() + static_cast<std::ptrdiff_t>(real_outputs), tosa.outputs.end());
  drop_dead(tosa);
  std::map<ValueId, std::vector<ValueId>> renumbered;
  cpu::Options options{.threads = threads};
  for (std::size_t i = 0; i < watched.size(); ++i) {
    ValueId now = tosa.outputs[real_outputs + i];
    renumbered[now] = watchers[watched[i]];
  }
  tosa.outputs.resize(real_outputs);
  for (const auto& [v, who] : renumbered) options.observed.push_back(v);
  TOSAIC_TRY(cpu::Program program, cpu::Program::compile(tosa, options));
  return Observed{std::move(program), std::move(renumbered)};
}

// Groups with a tensor much of which means nothing to its readers: their range is that of the rest, without a histogram
// that would count it. Where `may_widen` allows, they get 16 bits, as the inner tensors of attention have.
std::vector<char> masked_groups(const Graph& graph, Plan& plan, Saturation& saturation,
                                const std::vector<char>& may_widen, std::vector<char>& wide,
                                std::map<ValueId, Range>& group_ranges) {
  std::vector<int> steps(graph.values.size());
  for (ValueId v = 0; v < steps.size(); ++v) steps[v] = wide[v] ? 65535 : 255;
  saturation.resolve(steps);
  std::vector<char> masked(graph.values.size(), 0), widened(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const ValueId g = plan.groups.find(v);
    if (!plan.coded[v]) continue;
    if (saturation.meaningful(v)) masked[g] = 1;
    if (saturation.joins_masked(v) && may_widen[g]) widened[g] = 1;
  }
  for (auto& [g, range] : group_ranges)
    if (masked[g]) range = {};
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const ValueId g = plan.groups.find(v);
    if (widened[g]) wide[v] = 1;
    if (masked[g] && plan.coded[v] && !plan.hidden[v])
      group_ranges[g].include(saturation.meaningful(v).value_or(saturation.seen(v)));
  }
  return masked;
}

// Log-probabilities whose masked places saturate: right for those who read the others, and said.
void say_saturated(const Graph& graph, const Saturation& saturation, const Sink& sink) {
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs) {
      if (!sink || v == no_value || !saturation.logarithms_saturate(node, v)) continue;
      const double least = saturation.meaningful(v)->lowest;
      Diagnostic note =
          warning("calibrate.saturated",
                  fmt::format("masked log-probabilities of '{}' saturate at {:.3g} or below, beneath all others of "
                              "the samples",
                              graph[v].name, least))
              .hint("apply the mask behind the model where a program needs its number");
      note.severity = Severity::note;
      sink(located(std::move(note), node.loc));
    }
}

Result<std::vector<Range>> calibrate(const Graph& graph, Plan& plan, const std::vector<std::vector<Tensor>>& samples,
                                     const std::vector<char>& may_widen, std::vector<char>& wide, RowSizes& rows,
                                     const QuantiseOptions& options, const Sink& sink) {
  std::vector<char> unseen;
  TOSAIC_TRY(Lowered lowered, lower_observable(graph, unseen, sink));
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (unseen[v]) plan.coded[v] = 0;
  TOSAIC_TRY(Observed observed, compile_observed(graph, std::move(lowered), plan.coded, options.threads));
  const bool histogram = options.observer == Observer::histogram;
  std::map<ValueId, Range> group_ranges;
  std::map<ValueId, Histogram> histograms;
  Saturation saturation(graph);
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (plan.coded[v] && !plan.hidden[v]) group_ranges[plan.groups.find(v)];
  auto see = [&](const TensorView& content, const std::vector<ValueId>& values, ThreadPool& pool) {
    const Bytes widened = content.type.dtype == DType::f32 ? Bytes() : converted(content, DType::f32);
    const std::span<const float> x = widened.null() ? content.as<float>() : widened.as<float>();
    const Range range = range_of(x, pool);
    std::vector<ValueId> fed;  // a group sees each tensor once, however many of its members it stands for
    for (ValueId v : values) {
      saturation.see(v, x, range);
      rows.see(v, x);
      const ValueId g = plan.groups.find(v);
      if (plan.hidden[v] || std::count(fed.begin(), fed.end(), g)) continue;
      fed.push_back(g);
      group_ranges[g].include(range);
      if (histogram) histograms[g].add(x, range, pool);
    }
  };
  const cpu::Observer observer = [&](ValueId v, const TensorView& content, ThreadPool& pool) {
    if (auto it = observed.watchers.find(v); it != observed.watchers.end()) see(content, it->second, pool);
  };
  for (std::size_t done = 0; done < samples.size();) {
    if (options.cancelled && options.cancelled()) return error("compile.cancelled", "the compilation was cancelled");
    auto run = observed.program.run(samples[done], &observer);
    if (!run.ok()) return run.error();
    ++done;
    if (options.progress) options.progress(done, samples.size());
  }
  // The samples may choose few of a table's elements; its codes have to hold all of them.
  ThreadPool alone(1);
  for (auto [table, result] : plan.chosen_from) see({graph[table].type, graph[table].constant.data()}, {result}, alone);
  const std::vector<char> masked = masked_groups(graph, plan, saturation, may_widen, wide, group_ranges);
  say_saturated(graph, saturation, sink);
  for (ValueId v : graph.inputs)
    if (sink && saturation.left_out(v))
      sink(warning("calibrate.not-finite",
                   fmt::format("the samples for input '{}' hold NaN or infinities, which its range leaves out",
                               graph[v].name))
               .hint("give samples as the model will see them; NaN is no integer, infinities saturate"));
  std::vector<std::pair<const ValueId, Histogram>*> counted;
  for (auto& entry : histograms)
    if (!masked[entry.first]) counted.push_back(&entry);
  in_parallel(counted.size(), 4, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      group_ranges.at(counted[i]->first) = counted[i]->second.best_range(wide[counted[i]->first] ? 65535 : 255);
  });
  std::vector<Range> ranges(graph.values.size());
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (plan.coded[v]) ranges[v] = group_ranges[plan.groups.find(v)];
  return ranges;
}

// Constants of accumulating calls become codes, whichever operand they are; bias stays float, the lowering knows its
// scale. Weights have 8 bits beside 8 and 16; the matrices of a product have as many as each other.
void quantise_weights(Graph& graph, const Plan& plan, bool per_channel) {
  std::map<std::tuple<ValueId, int, DType>, ValueId> made;
  for (Node& node : graph.nodes) {
    FoundOp found = find_aten(node.op);
    if (!found.op || found.rule != Rule::accumulate || node.inputs.size() < 2) continue;
    if (node.outputs.empty() || node.outputs[0] == no_value || !plan.coded[node.outputs[0]]) continue;  // stays float
    for (const std::size_t operand : {1, 0}) {
      const ValueId x = node.inputs[1 - operand], w = node.inputs[operand];
      if (w == no_value || !graph[w].is_constant() || !real(graph[w]) || x == no_value || !plan.coded[x]) continue;
      const bool weight = operand == 1 && found.schema->argument("weight");
      const int axis = per_channel && weight ? weight_axis(node) : -1;
      const DType dtype = weight ? DType::i8 : graph[x].type.dtype;
      auto [it, fresh] = made.try_emplace({w, axis, dtype}, no_value);
      if (fresh) {
        const Tensor content{graph[w].type, graph[w].constant};
        const Tensor codes = dtype == DType::i16 ? wide_codes(content) : weight_codes(content, axis);
        it->second = graph.add_value(graph[w].name + ".codes" + (axis > 0 ? "1" : ""), codes.type, codes.data);
      }
      node.inputs[operand] = it->second;
    }
  }
}

// int16 inside composites, except where an accumulating call reads it (its fast form takes int8; with one product per
// result there is little to gain).
struct Widths {
  std::vector<char> wide, may_widen;
};
Widths choose_widths(const Graph& graph, Plan& plan, const Pieces& pieces, const std::vector<char>& inner,
                     const QuantiseOptions& options) {
  const bool all_wide = options.scheme == Scheme::int16x8;
  const std::size_t n = graph.values.size();
  Widths widths{std::vector<char>(n, 1), std::vector<char>(n, all_wide || options.wide_inside)};
  if (all_wide) return widths;
  auto& [wide, may_widen] = widths;
  std::vector<char> narrow_group(n, 0);
  for (ValueId v = 0; v < n; ++v)
    if (!inner[v] || !options.wide_inside) narrow_group[plan.groups.find(v)] = 1;
  for (const Node& node : graph.nodes) {
    FoundOp found = find_aten(node.op);
    if (found.op && found.rule == Rule::accumulate && !one_product_each(graph, node))
      for (ValueId v : node.inputs)
        if (v != no_value) narrow_group[plan.groups.find(v)] = 1, may_widen[plan.groups.find(v)] = 0;
  }
  for (ValueId v = 0; v < n; ++v) wide[v] = !narrow_group[plan.groups.find(v)];
  std::vector<char> wide_group(n, 0);
  for (ValueId v = 0; v < n; ++v)
    if (pieces.wide[v]) wide_group[plan.groups.find(v)] = 1;
  for (ValueId v = 0; v < n; ++v) wide[v] |= wide_group[plan.groups.find(v)];
  return widths;
}

// A program whose composites are expanded, as it is quantised: what becomes integers, of which width and range.
struct Calibrated {
  Graph graph;
  Plan plan;
  std::vector<char> wide;
  std::vector<Range> ranges;
  ValueId first_scaled;  // from here on, values belong to norms of scaled rows
};

Result<Calibrated> calibrated(Graph graph, std::vector<char> inner, const std::vector<std::vector<Tensor>>& samples,
                              const std::set<ValueId>& widened, RowSizes& rows, const QuantiseOptions& options,
                              const Sink& sink) {
  linear_forms(graph, inner);
  TOSAIC_TRY(Pieces pieces, unlike_pieces(graph, samples, options, sink));
  for (ValueId v : widened) pieces.wide[v] = 1;
  Plan plan = plan_groups(graph, pieces);
  auto [wide, may_widen] = choose_widths(graph, plan, pieces, inner, options);
  TOSAIC_TRY(std::vector<Range> ranges, calibrate(graph, plan, samples, may_widen, wide, rows, options, sink));
  return Calibrated{std::move(graph), std::move(plan), std::move(wide), std::move(ranges), no_value};
}

// Norms whose rows are too unlike for the codes of their sizes.
std::vector<RowNorm> unlike_norms(const Graph& graph, const std::vector<RowNorm>& norms, const RowSizes& rows,
                                  const std::vector<char>& inner, const ScaledRows& scaled,
                                  const QuantiseOptions& options) {
  std::vector<RowNorm> unlike;
  for (const RowNorm& norm : norms) {
    const bool to_eight_bits = options.scheme == Scheme::int8 && inner[norm.size];
    const bool done = scaled.done.contains(norm.rows) || scaled.done.contains(graph.nodes[norm.product].outputs[0]);
    if (!done && rows.unlikeness(norm) > (to_eight_bits ? 8 : 4)) unlike.push_back(norm);
  }
  return unlike;
}

// Can all that holds codes of v have 16 bits? An input has what its caller expects.
bool widens(const Calibrated& c, ValueId v) {
  Groups groups = c.plan.groups;
  const ValueId g = groups.find(v);
  for (ValueId w = 0; w < c.graph.values.size(); ++w) {
    if (groups.find(w) != g) continue;
    if (std::count(c.graph.inputs.begin(), c.graph.inputs.end(), w) || !may_be_wide(c.graph, w)) return false;
  }
  return true;
}

// Eight bits leave nothing of rows that are so much smaller than others.
void widen_rows(Calibrated& c, const std::vector<RowNorm>& unlike, const RowSizes& rows, std::set<ValueId>& widened,
                const QuantiseOptions& options, const Sink& sink) {
  constexpr double much = 16;
  for (const RowNorm& norm : unlike) {
    const ValueId x = norm.source;
    const double factor = rows.unlikeness(norm);
    if (c.wide[x] || !(factor > much) || widened.contains(x)) continue;
    const bool wider = options.wide_inside && widens(c, x);
    if (wider) widened.insert(x);
    if (sink)
      sink(located(
          warning("quantise.unlike-rows",
                  fmt::format("rows of '{}' that are normalised differ in size by a factor of {:.3g}", c.graph[x].name,
                              factor))
              .note(wider ? std::string("the tensor takes 16 bits")
                          : fmt::format("of 127 codes, {} are left to the smallest", static_cast<int>(127 / factor)))
              .hint(wider ? "" : "use --quantize int16x8"),
          c.graph.nodes[norm.product].loc));
  }
  for (ValueId v : widened) c.wide[v] = 1;
}

// Calibrates, and again where that shows that rows have to be scaled first.
Result<Calibrated> calibrated_by_rows(Graph graph, std::vector<char> inner,
                                      const std::vector<std::vector<Tensor>>& samples, const QuantiseOptions& options,
                                      const Sink& sink) {
  constexpr int most = 3;  // rows of x, then of x - mean(x)
  ScaledRows scaled;
  std::set<ValueId> widened;
  const auto first_scaled = static_cast<ValueId>(graph.values.size());
  for (int round = 1;; ++round) {
    const auto norms = find_row_norms(graph);
    RowSizes rows(norms);
    std::vector<Diagnostic> said;
    const Sink hold = [&](Diagnostic d) { said.push_back(std::move(d)); };
    TOSAIC_TRY(Calibrated result, calibrated(graph, inner, samples, widened, rows, options, sink ? hold : Sink()));
    auto unlike = unlike_norms(graph, norms, rows, inner, scaled, options);
    if (round == most) unlike.clear();
    widen_rows(result, unlike, rows, widened, options, sink);
    if (unlike.empty() || !options.wide_inside) {
      for (Diagnostic& d : said) sink(std::move(d));
      if (round > 1) result.first_scaled = first_scaled;
      for (auto [mean, of] : scaled.means) result.ranges[mean].include(result.ranges[of]);
      return result;
    }
    std::vector<double> largest;
    for (const Range& range : result.ranges) largest.push_back(std::max(-range.lowest, range.highest));
    scale_rows(graph, unlike, largest, result.wide, inner, scaled);
  }
}

}  // namespace

Result<Graph> quantise(Graph graph, const std::vector<std::vector<Tensor>>& samples, const QuantiseOptions& options,
                       const Sink& sink) {
  TOSAIC_CHECK(check_samples(graph, samples));
  std::vector<char> inner;
  TOSAIC_CHECK(expand_composites(graph, inner));
  TOSAIC_TRY(Calibrated found, calibrated_by_rows(std::move(graph), std::move(inner), samples, options, sink));
  auto& [body, plan, wide, ranges, first_scaled] = found;
  const bool all_wide = options.scheme == Scheme::int16x8;
  std::vector<char> exact(body.values.size(), !all_wide);
  for (ValueId v = first_scaled; v < exact.size(); ++v) exact[plan.groups.find(v)] = 0;
  const std::vector<char> none = without_headroom(body, ranges);
  for (ValueId v = 0; v < body.values.size(); ++v)
    if (none[v]) exact[plan.groups.find(v)] = 1;
  for (auto [table, result] : plan.chosen_from) exact[plan.groups.find(result)] = 1;  // nothing is larger
  for (ValueId v = 0; v < body.values.size(); ++v) {
    if (!plan.coded[v] || body[v].is_constant()) continue;
    TensorType& type = body[v].type;
    type.dtype = wide[v] ? DType::i16 : DType::i8;
    const double largest =
        std::max(-ranges[v].lowest, ranges[v].highest) * (exact[plan.groups.find(v)] ? 1.0 : int16_headroom);
    type.scales = wide[v] ? symmetric_scales(largest, DType::i16) : affine_scales(ranges[v], DType::i8);
  }
  leave_unresolved_float(body, sink);
  quantise_weights(body, plan, options.per_channel);
  drop_dead(body);
  make_names_unique(body);
  return std::move(body);
}

}  // namespace tosaic
