// SPDX-License-Identifier: Apache-2.0
#include "compare/watched.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tidy/tidy.h"

namespace tosaic {
namespace {

Status runs(const Graph& graph, const Node& node, const std::vector<char>& used, const tosa::Spec* spec) {
  TOSAIC_TRY(const Trial trial, try_lowering(graph, node, used, spec));
  return execute::Executable::check_lowering(trial.graph);
}

Result<Lowered> lower_whole(const Graph& graph, const LowerOptions& how) {
  TOSAIC_TRY(Lowered lowered, lower(graph, how));
  TOSAIC_CHECK(execute::Executable::check_lowering(lowered.graph));
  return lowered;
}

// Without the calls that cannot be run, and those that read their results.
Result<Lowered> lower_runnable(const Graph& graph, const std::vector<char>& wanted, const LowerOptions& how) {
  auto whole = lower_whole(graph, how);
  if (whole.ok() || whole.error().internal) return whole;
  const std::vector<char> used = used_values(graph);
  std::vector<char> hidden(graph.values.size(), 0), outside;
  Graph rest = graph;
  rest.nodes.clear();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool is_outside = n < how.outside.size() && how.outside[n];
    if (std::ranges::none_of(node.inputs, [&](ValueId v) { return v != no_value && hidden[v]; }) &&
        runs(graph, node, used, is_outside ? nullptr : how.spec).ok()) {
      rest.nodes.push_back(node);
      outside.push_back(is_outside);
      continue;
    }
    for (ValueId v : node.outputs)
      if (v != no_value) hidden[v] = 1;
  }
  if (rest.nodes.size() == graph.nodes.size()) return whole;
  std::erase_if(rest.outputs, [&](ValueId v) { return hidden[v]; });
  // Nobody may read any more what is to be watched: it is an output meanwhile.
  const std::size_t own_outputs = rest.outputs.size();
  for (const Node& node : rest.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value && v < wanted.size() && wanted[v]) rest.outputs.push_back(v);
  LowerOptions of_rest = how;
  of_rest.outside = outside;
  TOSAIC_TRY(Lowered lowered, lower_whole(rest, of_rest));
  lowered.graph.outputs.resize(own_outputs);
  return lowered;
}

Tensor first_content(const Graph& graph, const State& state) {
  const TensorType& type = graph[state.input].type;
  return {type, state.initial.null() ? Bytes::of(std::vector<std::byte>(type.storage_bytes())) : state.initial};
}

template <class T>
Bytes nearest(std::span<const float> x, const TensorType& type) {
  const double scale = type.scales->scale[0], zero = static_cast<double>(type.scales->zero_point[0]);
  const IntegerRange ends = quantised_range(type);
  const double lowest = static_cast<double>(ends.lowest), highest = static_cast<double>(ends.highest);
  std::vector<T> q(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::nearbyint(static_cast<double>(x[i]) / scale) + zero;
    q[i] = static_cast<T>(std::isnan(exact) ? zero : std::clamp(exact, lowest, highest));
  }
  return Bytes::of(std::move(q));
}

}  // namespace

Tensor quantised_tensor(const Tensor& floats, const TensorType& type) {
  const Bytes widened =
      floats.type.dtype == DType::f32 ? Bytes() : converted({floats.type, floats.data.data()}, DType::f32);
  const TensorView view{floats.type, widened.null() ? floats.data.data() : widened.data()};
  const std::span<const float> x = view.as<float>();
  return {type, type.dtype == DType::i16 ? nearest<std::int16_t>(x, type) : nearest<std::int8_t>(x, type)};
}

Result<Watched> Watched::make(Graph graph, const std::vector<char>& wanted, const LowerOptions& how, int threads) {
  Graph tensors = graph;
  const StatesAsTensors states(tensors);
  TOSAIC_TRY(Lowered lowered, lower_runnable(tensors, wanted, how));
  if (!states.states().empty() && lowered.graph.outputs.size() != tensors.outputs.size())
    return error("compare.states", "what the program keeps from run to run cannot be computed here")
        .hint("`tosaic compile` names the call that cannot be run for calibration: express it in other operators");
  return of_lowered(std::move(graph), std::move(lowered), wanted, threads);
}

Result<Watched> Watched::of_lowered(Graph graph, Lowered lowered, const std::vector<char>& wanted, int threads) {
  Graph& tosa = lowered.graph;
  std::vector<std::int32_t> output_of(graph.values.size(), -1);
  std::map<ValueId, std::int32_t> known;  // by the TOSA value: each is an output once
  for (std::size_t i = 0; i < tosa.outputs.size(); ++i) known.emplace(tosa.outputs[i], static_cast<std::int32_t>(i));
  for (ValueId v : tosa.inputs) known[v] = -1;
  for (ValueId v = 0; v < wanted.size(); ++v) {
    const ValueId made = lowered.of[v];
    if (!wanted[v] || made == no_value || tosa[made].is_constant()) continue;
    const auto [it, fresh] = known.try_emplace(made, static_cast<std::int32_t>(tosa.outputs.size()));
    output_of[v] = it->second;
    if (fresh) tosa.outputs.push_back(made);
  }
  tidy(tosa);
  TOSAIC_TRY(execute::Executable program, execute::Executable::of_lowering(std::move(tosa), {.threads = threads}));
  Watched made(std::move(graph), std::move(program));
  made.output_of_ = std::move(output_of);
  for (const State& state : made.states_.states()) made.content_.push_back(first_content(made.graph_, state));
  return made;
}

Status Watched::run(const std::vector<Tensor>& sample) {
  inputs_ = sample;
  inputs_.insert(inputs_.end(), content_.begin(), content_.end());
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (const TensorType& type = graph_[graph_.inputs[i]].type; type.quantised() && !inputs_[i].type.quantised())
      inputs_[i] = quantised_tensor(inputs_[i], type);
  TOSAIC_TRY(outputs_, program_.run(inputs_));
  // The graph's own outputs come first, and the states' are the last of them.
  const std::size_t first = graph_.outputs.size() - content_.size();
  for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = outputs_[first + i];
  return {};
}

const Tensor* Watched::at(ValueId v) const {
  if (v == no_value || outputs_.empty()) return nullptr;
  if (output_of_[v] >= 0) return &outputs_[static_cast<std::size_t>(output_of_[v])];
  const auto input = std::ranges::find(graph_.inputs, v);
  return input == graph_.inputs.end() ? nullptr : &inputs_[static_cast<std::size_t>(input - graph_.inputs.begin())];
}

}  // namespace tosaic
