// SPDX-License-Identifier: Apache-2.0
#include "quantise/trained_norms.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/tensor.h"
#include "ops/op.h"

namespace tosaic {
namespace {

// Its tensors, as the schema calls them; nothing: it keeps no statistics.
struct Operands {
  ValueId gain = no_value, offset = no_value, mean = no_value, variance = no_value;
};
std::optional<Operands> statistics_of(const Node& node) {
  const FoundOp found = find_aten(node.op);
  if (!found.schema || node.outputs.empty() || node.inputs.empty() || node.inputs[0] == no_value) return std::nullopt;
  // In training, it looks at what it is given instead.
  if (node.attrs.get_or("training", false) || node.attrs.get_or("use_input_stats", false)) return std::nullopt;
  Operands of;
  std::size_t tensor = 0;
  for (const SchemaArgument& argument : found.schema->arguments) {
    if (!argument.is_tensor() || tensor == node.inputs.size()) continue;
    const ValueId v = node.inputs[tensor++];
    if (argument.name == "weight") of.gain = v;
    if (argument.name == "bias") of.offset = v;
    if (argument.name == "running_mean") of.mean = v;
    if (argument.name == "running_var") of.variance = v;
  }
  if (of.mean == no_value || of.variance == no_value) return std::nullopt;
  return of;
}

// The elements of an operand that is a constant, or `otherwise` where there is none; nullopt: it is computed.
std::optional<std::vector<double>> reals(const Graph& graph, ValueId v, std::size_t channels, double otherwise) {
  if (v == no_value) return std::vector<double>(channels, otherwise);
  const Value& value = graph[v];
  if (!value.is_constant() || value.type.shape.elements() != static_cast<std::int64_t>(channels)) return std::nullopt;
  std::vector<double> out(channels);
  for (std::size_t i = 0; i < channels; ++i) out[i] = element_as_double(value.type.dtype, value.constant.data(), i);
  return out;
}

std::optional<TrainedNorm> trained(const Graph& graph, const Node& node) {
  const std::optional<Operands> of = statistics_of(node);
  if (!of || !graph[of->mean].type.shape.is_static()) return std::nullopt;
  const auto count = static_cast<std::size_t>(graph[of->mean].type.shape.elements());
  const auto gain = reals(graph, of->gain, count, 1), offset = reals(graph, of->offset, count, 0);
  const auto mean = reals(graph, of->mean, count, 0), variance = reals(graph, of->variance, count, 1);
  if (!gain || !offset || !mean || !variance) return std::nullopt;
  const auto is = [](double value) { return [value](double x) { return x == value; }; };
  if (std::ranges::all_of(*mean, is(0)) && std::ranges::all_of(*variance, is(1))) return std::nullopt;
  const double eps = node.attrs.get_or("eps", 1e-5);
  using Seen = TrainedNorm::Seen;
  const auto seen = [&](ValueId v) { return Seen{graph[v].name, std::vector<TrainedNorm::Channel>(count)}; };
  TrainedNorm norm{seen(node.outputs[0]), seen(node.inputs[0]), node.loc};
  for (std::size_t c = 0; c < count; ++c) {
    const double deviation = std::fabs((*gain)[c]) * std::sqrt((*variance)[c] / ((*variance)[c] + eps));
    // A channel that was constant in training: what it gives is rounding errors.
    const bool dead = !(deviation > 0) || !((*variance)[c] > eps) || !std::isfinite((*offset)[c]);
    norm.result.channels[c] = {(*offset)[c], dead ? 0 : deviation};
    norm.operand.channels[c] = {(*mean)[c], dead ? 0 : std::sqrt((*variance)[c])};
  }
  return norm;
}

}  // namespace

std::vector<TrainedNorm> trained_norms(const Graph& program) {
  std::vector<TrainedNorm> norms;
  for (const Node& node : program.nodes)
    if (auto norm = trained(program, node)) norms.push_back(*std::move(norm));
  return norms;
}

}  // namespace tosaic
