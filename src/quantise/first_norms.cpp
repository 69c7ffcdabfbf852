// SPDX-License-Identifier: Apache-2.0
#include "quantise/first_norms.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "lower/lower.h"
#include "quantise/as_f32.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// What the graph still has of each norm, by name.
struct Remembered {
  const TrainedNorm* norm;
  const TrainedNorm::Seen* seen;
};
std::map<std::string_view, Remembered> remembered(const Graph& graph, const std::vector<TrainedNorm>& norms) {
  std::set<std::string_view> computed;
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value) computed.insert(graph[v].name);
  std::map<std::string_view, Remembered> by_name;
  for (const TrainedNorm& norm : norms) {
    const TrainedNorm::Seen& seen = computed.contains(norm.result.value) ? norm.result : norm.operand;
    by_name.emplace(seen.value, Remembered{&norm, &seen});
  }
  return by_name;
}

// With no other norm, and nothing that is kept from run to run, on the way from the inputs.
std::vector<FirstNorm> first_norms(const Graph& graph, const std::vector<TrainedNorm>& norms) {
  const auto by_name = remembered(graph, norms);
  std::vector<char> later(graph.values.size(), 0);
  std::vector<std::vector<char>> from(graph.values.size());
  std::vector<FirstNorm> found;
  const auto arrive = [&](ValueId v, bool after, const std::vector<char>& reads) {
    later[v] = after;
    from[v] = reads;
    const auto norm = by_name.find(graph[v].name);
    if (norm == by_name.end()) return;
    const TrainedNorm::Seen& seen = *norm->second.seen;
    const Shape& shape = graph[v].type.shape;
    const bool by_channel =
        shape.rank() >= 2 && shape.is_static() && shape.size(1) == static_cast<std::int64_t>(seen.channels.size());
    FirstNorm first{v, seen.channels, norm->second.norm->loc, {}};
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (reads[i] && is_float(graph[graph.inputs[i]].type.dtype)) first.inputs.push_back(i);
    if (!after && by_channel && !first.inputs.empty()) found.push_back(std::move(first));
    later[v] = 1;
  };
  std::set<ValueId> kept;
  for (const State& s : graph.states) kept.insert(s.input);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    std::vector<char> itself(graph.inputs.size(), 0);
    itself[i] = 1;
    arrive(graph.inputs[i], kept.contains(graph.inputs[i]), itself);
  }
  for (const Node& node : graph.nodes) {
    bool after = !node.regions.empty();
    std::vector<char> reads(graph.inputs.size(), 0);
    for (ValueId v : node.inputs) {
      if (v == no_value) continue;
      after |= later[v] != 0;
      for (std::size_t i = 0; i < from[v].size(); ++i) reads[i] |= from[v][i];
    }
    for (ValueId v : node.outputs)
      if (v != no_value) arrive(v, after, reads);
  }
  return found;
}

void add(const FirstNorm& norm, const Tensor& y, SeenChannels& to) {
  const Shape& shape = y.type.shape;
  const std::size_t channels = norm.channels.size();
  std::size_t inner = 1;
  for (int d = 2; d < shape.rank(); ++d) inner *= static_cast<std::size_t>(shape.size(d));
  const Bytes floats = as_f32(y);
  const std::span<const float> values = floats.as<float>();
  for (std::size_t first = 0, run = 0; first < values.size(); first += inner, ++run) {
    const TrainedNorm::Channel& channel = norm.channels[run % channels];
    if (!(channel.deviation > 0)) continue;
    double s = 0, q = 0;
    for (std::size_t i = first; i < first + inner; ++i) {
      const double z = (values[i] - channel.mean) / channel.deviation;
      s += z;
      q += z * z;
    }
    to.sum[run % channels] += s;
    to.squares[run % channels] += q;
  }
  const std::size_t of_each = values.size() / channels;
  to.count += static_cast<double>(of_each);
}

}  // namespace

double SeenChannels::variance(std::size_t c) const { return std::max(0.0, squares[c] / count - mean(c) * mean(c)); }

std::optional<FirstNorms> FirstNorms::of(const Graph& graph, const std::vector<TrainedNorm>& norms, int threads) {
  FirstNorms start;
  start.norms_ = first_norms(graph, norms);
  if (start.norms_.empty()) return std::nullopt;
  Graph part = graph;
  part.states.clear();
  part.outputs.clear();
  for (const FirstNorm& norm : start.norms_) part.outputs.push_back(norm.value);
  drop_dead(part);
  auto lowered = lower(part);
  if (!lowered.ok()) return std::nullopt;
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = threads});
  if (!program.ok()) return std::nullopt;
  start.program_ = *std::move(program);
  return start;
}

std::vector<SeenChannels> FirstNorms::see(std::span<const std::vector<Tensor>> samples) {
  std::vector<SeenChannels> seen;
  for (const FirstNorm& one : norms_) {
    const std::vector<double> none(one.channels.size(), 0);
    seen.push_back({none, none});
  }
  for (const std::vector<Tensor>& sample : samples) {
    const auto results = program_->run(sample);
    if (!results.ok()) return {};
    for (std::size_t i = 0; i < norms_.size(); ++i) add(norms_[i], (*results)[i], seen[i]);
  }
  return seen;
}

}  // namespace tosaic
