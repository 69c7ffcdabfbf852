// SPDX-License-Identifier: Apache-2.0
#include "quantise/first_norms.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lower/lower.h"
#include "quantise/as_f32.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// With no other norm, and nothing that is kept from run to run, on the way from the inputs.
std::vector<FirstNorm> first_norms(const Graph& graph, const std::vector<TrainedNorm>& norms) {
  std::map<std::string_view, const TrainedNorm*> by_name;
  for (const TrainedNorm& norm : norms) by_name.emplace(norm.result, &norm);
  std::vector<char> later(graph.values.size(), 0);
  std::vector<std::vector<char>> from(graph.values.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    from[graph.inputs[i]].assign(graph.inputs.size(), 0);
    from[graph.inputs[i]][i] = 1;
  }
  for (const State& s : graph.states) later[s.input] = 1;
  std::vector<FirstNorm> found;
  for (const Node& node : graph.nodes) {
    char after = node.regions.empty() ? 0 : 1;
    std::vector<char> reads(graph.inputs.size(), 0);
    for (ValueId v : node.inputs) {
      if (v == no_value) continue;
      after |= later[v];
      for (std::size_t i = 0; i < from[v].size(); ++i) reads[i] |= from[v][i];
    }
    for (ValueId v : node.outputs) {
      if (v == no_value) continue;
      later[v] = after;
      from[v] = reads;
      const auto norm = by_name.find(graph[v].name);
      if (norm == by_name.end()) continue;
      const Shape& shape = graph[v].type.shape;
      const bool by_channel = shape.rank() >= 2 && shape.is_static() &&
                              shape.size(1) == static_cast<std::int64_t>(norm->second->channels.size());
      FirstNorm first{v, *norm->second, {}};
      for (std::size_t i = 0; i < reads.size(); ++i)
        if (reads[i] && is_float(graph[graph.inputs[i]].type.dtype)) first.inputs.push_back(i);
      if (!after && by_channel && !first.inputs.empty()) found.push_back(std::move(first));
      later[v] = 1;
    }
  }
  return found;
}

void add(const TrainedNorm& norm, const Tensor& y, SeenChannels& to) {
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
  for (const FirstNorm& norm : start.norms_) part.outputs.push_back(norm.result);
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
    const std::vector<double> none(one.norm.channels.size(), 0);
    seen.push_back({none, none});
  }
  for (const std::vector<Tensor>& sample : samples) {
    const auto results = program_->run(sample);
    if (!results.ok()) return {};
    for (std::size_t i = 0; i < norms_.size(); ++i) add(norms_[i].norm, (*results)[i], seen[i]);
  }
  return seen;
}

}  // namespace tosaic
