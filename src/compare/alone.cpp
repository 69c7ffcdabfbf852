// SPDX-License-Identifier: Apache-2.0
#include "compare/alone.h"

#include <algorithm>
#include <map>

#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// A layer's calls in a graph of their own. Operands from outside are its inputs, constants are as `constant` has them.
struct Excerpt {
  Graph graph;
  std::vector<ValueId> inputs;  // of the graph that it is from
};
template <class F>
Excerpt excerpt(const Graph& from, const std::vector<std::size_t>& calls, ValueId result, F&& constant) {
  Excerpt made;
  std::map<ValueId, ValueId> known;
  for (std::size_t n : calls) {
    Node call = from.nodes[n];
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      ValueId& v = call.inputs[i];
      if (v == no_value) continue;
      if (from[v].is_constant()) {
        const Tensor content = constant(n, i, v);
        v = made.graph.add_value(from[v].name, content.type, content.data);
        continue;
      }
      auto [it, fresh] = known.try_emplace(v, no_value);
      if (fresh) {
        it->second = made.graph.add_value(from[v].name, from[v].type);
        made.graph.inputs.push_back(it->second);
        made.inputs.push_back(v);
      }
      v = it->second;
    }
    for (ValueId& v : call.outputs)
      if (v != no_value) v = known[v] = made.graph.add_value(from[v].name, from[v].type);
    made.graph.nodes.push_back(std::move(call));
  }
  made.graph.outputs = {known.at(result)};
  make_names_unique(made.graph);
  return made;
}

// As something of the type keeps it.
Tensor rounded_to(const Tensor& floats, DType kept) {
  const Bytes narrow = converted({floats.type, floats.data.data()}, kept);
  return {floats.type, converted({floats.type.with(kept), narrow.data()}, floats.type.dtype)};
}

Tensor constant_of(const Value& value) { return {value.type, value.constant}; }

// The reals of a quantised constant.
Tensor dequantised(const Value& value) {
  const Scales& scales = *value.type.scales;
  const Shape& shape = value.type.shape;
  std::size_t channels = 1, inner = 1;
  if (!scales.per_tensor()) {
    channels = static_cast<std::size_t>(shape.size(scales.axis));
    for (int d = scales.axis + 1; d < shape.rank(); ++d) inner *= static_cast<std::size_t>(shape.size(d));
  }
  std::vector<float> reals(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const std::size_t c = scales.per_tensor() ? 0 : i / inner % channels;
    const std::int64_t q = element_as_integer(value.type.dtype, value.constant.data(), i);
    reals[i] = static_cast<float>(scales.scale[c] * static_cast<double>(q - scales.zero_point[c]));
  }
  Bytes content = Bytes::of(std::move(reals));
  return {{DType::f32, shape, {}}, std::move(content)};
}

bool computes(const Graph& graph, std::size_t n) {
  const Node& call = graph.nodes[n];
  return call.regions.empty() && !find_aten(call.op).rule->passes_values;
}

}  // namespace

std::optional<Alone> Alone::prepared(Graph call, std::vector<ValueId> reads, const tosa::Spec* spec,
                                     const NarrowFloats* narrow, int threads) {
  std::vector<TensorType> types;
  for (ValueId v : call.inputs) types.push_back(call[v].type);
  auto lowered = lower(call, {.spec = spec});
  if (!lowered.ok()) return std::nullopt;
  Graph tosa = std::move(lowered->graph);
  tidy(tosa);
  if (narrow && narrow->alone) {
    const auto kept = narrow->alone(tosa);
    if (!kept.ok()) return std::nullopt;
    tosa = rounded_as_kept(std::move(tosa), *kept);
  }
  auto program = execute::Executable::of_lowering(std::move(tosa), {.threads = threads});
  if (!program.ok()) return std::nullopt;
  return Alone(*std::move(program), std::move(reads), std::move(types));
}

std::optional<Alone> Alone::as_executed(const Graph& program, const Layer& layer, const Counterparts& counterparts,
                                        const tosa::Spec* spec, const NarrowFloats* narrow, int threads) {
  const bool own = std::ranges::any_of(layer.calls, [&](std::size_t n) { return computes(program, n); });
  const TensorType& result = program[layer.result].type;
  if (!own || !(narrow || result.quantised() || is_narrow_float(result.dtype))) return std::nullopt;
  Excerpt made = excerpt(program, layer.calls, layer.result,
                         [&](std::size_t, std::size_t, ValueId v) { return constant_of(program[v]); });
  if (made.inputs.empty()) return std::nullopt;
  std::vector<ValueId> reads;
  for (ValueId v : made.inputs) reads.push_back(counterparts.of(v));
  if (std::ranges::count(reads, no_value) > 0) return std::nullopt;
  auto alone = prepared(std::move(made.graph), std::move(reads), spec, narrow, threads);
  if (!alone || !narrow) return alone;
  for (std::size_t i = 0; i < made.inputs.size(); ++i) alone->kept_[i] = narrow->kept[made.inputs[i]];
  alone->result_kept_ = narrow->kept[layer.result];
  return alone;
}

std::optional<Alone> Alone::with_weights(const Graph& quantised, const Graph& floats, const Layer& layer,
                                         const Counterparts& counterparts, const NarrowFloats* narrow, int threads) {
  const DType weights = narrow ? narrow->weights : DType::f32;
  const auto made_by = producers(floats);
  std::vector<std::size_t> calls;
  std::map<std::size_t, std::size_t> quantised_call;
  for (std::size_t n : layer.calls) {
    const Node& call = quantised.nodes[n];
    const ValueId y = counterparts.of(call.outputs[0]);
    if (y == no_value || made_by[y] < 0) return std::nullopt;
    const auto same = static_cast<std::size_t>(made_by[y]);
    if (floats.nodes[same].op != call.op || floats.nodes[same].inputs.size() > call.inputs.size()) return std::nullopt;
    calls.push_back(same);
    quantised_call[same] = n;
  }
  bool any = false;
  Excerpt made = excerpt(floats, calls, layer.wanted, [&](std::size_t n, std::size_t i, ValueId v) {
    const ValueId w = quantised.nodes[quantised_call.at(n)].inputs[i];
    const bool weight = w != no_value && quantised[w].is_constant() && quantised[w].type.quantised() &&
                        quantised[w].type.shape == floats[v].type.shape && floats[v].type.dtype == DType::f32;
    any |= weight;
    if (weight) return dequantised(quantised[w]);
    if (weights != DType::f32 && i == 1 && find_aten(floats.nodes[n].op).rule->accumulates &&
        floats[v].type.dtype == DType::f32) {
      any = true;
      return rounded_to(constant_of(floats[v]), weights);
    }
    const bool corrected =
        w != no_value && quantised[w].is_constant() && quantised[w].type == floats[v].type;  // a bias
    return constant_of(corrected ? quantised[w] : floats[v]);
  });
  if (!any || made.inputs.empty()) return std::nullopt;
  return prepared(std::move(made.graph), std::move(made.inputs), nullptr, nullptr, threads);
}

std::optional<Tensor> Alone::run(const Watched& floats) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const Tensor* x = floats.at(reads_[i]);
    if (!x) return std::nullopt;
    const TensorType& type = types_[i];
    if (type.quantised())
      operands.push_back(quantised_tensor(*x, type));
    else if (x->type.dtype == type.dtype)
      operands.push_back(*x);
    else if (is_float(x->type.dtype) && is_float(type.dtype))
      operands.push_back({type, converted({x->type, x->data.data()}, type.dtype)});
    else
      return std::nullopt;
    if (kept_[i] && is_float(type.dtype)) operands.back() = rounded_to(operands.back(), *kept_[i]);
  }
  auto results = program_.run(operands);
  if (!results.ok()) return std::nullopt;
  Tensor result = std::move(results->front());
  return result_kept_ ? rounded_to(result, *result_kept_) : result;
}

}  // namespace tosaic
