// SPDX-License-Identifier: Apache-2.0
#include "integer_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "interp/interp.h"
#include "lower/lower.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic::domain {
namespace {

std::size_t count(const Tensor& t) { return static_cast<std::size_t>(t.type.shape.elements()); }

// The scale and zero point of element i.
std::pair<double, double> scale_at(const TensorType& type, std::size_t i) {
  const Scales& s = *type.scales;
  std::size_t k = 0;
  if (s.scale.size() > 1) {
    std::size_t inner = 1;
    for (int dim = s.axis + 1; dim < type.rank(); ++dim) inner *= static_cast<std::size_t>(type.shape.size(dim));
    k = i / inner % s.scale.size();
  }
  return {s.scale[k], static_cast<double>(s.zero_point[s.zero_point.size() == 1 ? 0 : k])};
}

// One node of a graph as a program: computed operands become inputs.
struct Alone {
  Graph graph;
  std::vector<ValueId> operands;  // of the whole graph, one per input
  std::vector<ValueId> results;   // one per output
};
Alone alone(const Graph& whole, const Node& node, const std::vector<char>& used, bool as_reals) {
  Alone one;
  std::map<ValueId, ValueId> copies;
  auto copy = [&](ValueId v) {
    if (v == no_value) return v;
    if (auto it = copies.find(v); it != copies.end()) return it->second;
    Tensor value{whole[v].type, whole[v].constant};
    if (as_reals && whole[v].is_constant()) value = real(value);
    if (as_reals && value.type.quantised()) value.type = {DType::f32, value.type.shape, {}};
    return copies[v] = one.graph.add_value(whole[v].name, value.type, value.data);
  };
  Node twin = node;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    const bool first = v != no_value && !copies.count(v);
    twin.inputs[i] = copy(v);
    if (!first || whole[v].is_constant()) continue;
    one.graph.inputs.push_back(twin.inputs[i]);
    one.operands.push_back(v);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId v = node.outputs[i];
    twin.outputs[i] = copy(v);
    if (v == no_value || !used[v]) continue;
    one.graph.outputs.push_back(twin.outputs[i]);
    one.results.push_back(v);
  }
  one.graph.nodes.push_back(std::move(twin));
  return one;
}

Result<std::vector<Tensor>> run_alone(const Alone& one, const std::vector<Tensor>& inputs, const tosa::Spec* spec) {
  auto lowered = lower(one.graph, {.spec = spec});
  if (!lowered.ok()) return lowered.error();
  interp::Options options;
  options.precise = spec == nullptr;
  if (!spec) return interp::run(lowered->graph, inputs, options);
  auto results = interp::run(lowered->graph, as_bytes(inputs), options);
  if (!results.ok()) return results;
  std::vector<TensorType> types;
  for (ValueId v : one.graph.outputs) types.push_back(one.graph[v].type);
  return under_types(*std::move(results), types);
}

bool finite(const std::vector<double>& list) {
  return std::all_of(list.begin(), list.end(), [](double x) { return std::isfinite(x); });
}

// What is right for each element.
struct Bounds {
  std::vector<double> low, high;
  void widen(const std::vector<double>& by) {
    for (std::size_t i = 0; i < by.size(); ++i) {
      if (!std::isfinite(by[i])) continue;
      if (!(std::isfinite(low[i]) && low[i] <= by[i])) low[i] = by[i];
      if (!(std::isfinite(high[i]) && high[i] >= by[i])) high[i] = by[i];
    }
  }
};

// The float form of one function of one tensor of quantised values: what it gives for numbers that need not be
// quantised values'.
Result<std::vector<double>> values_at(const Alone& floating, const Tensor& quantised_values,
                                      const std::vector<double>& places) {
  std::vector<double> x(places);
  for (double& v : x) v *= quantised_values.type.scales->scale[0];  // 16-bit quantised values have no zero point
  auto run =
      run_alone(floating, {{{DType::f32, quantised_values.type.shape, {}}, constant_bytes(DType::f32, x)}}, nullptr);
  if (!run.ok()) return run.error();
  return numbers(run->at(0));
}

// Quantised values moved down to a multiple of 128, plus `step`: where a table of 16 bits has its knots.
std::vector<double> next_to_knots(const Tensor& quantised_values, int step) {
  std::vector<double> places;
  for (auto code : quantised_values.data.as<std::int16_t>())
    places.push_back(std::clamp((code >> 7) * 128.0 + step, -32767.0, 32767.0));
  return places;
}

// Where a function begins or ends between two knots: the number next to the end of its domain, for each element; NaN
// elsewhere.
Result<std::vector<double>> at_domain_end(const Alone& floating, const Tensor& quantised_values) {
  std::vector<double> good(count(quantised_values), NAN), bad(good), before = next_to_knots(quantised_values, 0);
  auto last = values_at(floating, quantised_values, before);
  if (!last.ok()) return last.error();
  for (int step = 1; step <= 128; ++step) {
    const auto places = next_to_knots(quantised_values, step);
    auto now = values_at(floating, quantised_values, places);
    if (!now.ok()) return now.error();
    for (std::size_t i = 0; i < good.size(); ++i)
      if (std::isfinite((*now)[i]) != std::isfinite((*last)[i])) {
        good[i] = std::isfinite((*now)[i]) ? places[i] : before[i];
        bad[i] = std::isfinite((*now)[i]) ? before[i] : places[i];
      }
    last = now, before = places;
  }
  for (int i = 0; i < 24; ++i) {  // halving
    std::vector<double> middle(good);
    for (std::size_t k = 0; k < good.size(); ++k) middle[k] = (good[k] + bad[k]) / 2;
    auto there = values_at(floating, quantised_values, middle);
    if (!there.ok()) return there.error();
    for (std::size_t k = 0; k < good.size(); ++k) (std::isfinite((*there)[k]) ? good[k] : bad[k]) = middle[k];
  }
  return values_at(floating, quantised_values, good);
}

// A table of 16 bits is a line between two knots: what it gives lies between what the function gives there, or at the
// end of its domain.
Status widen_to_knots(const Alone& floating, const Tensor& quantised_values, Bounds& right) {
  const Bounds given = right;
  bool everywhere = true;
  for (int step : {0, 128}) {
    auto there = values_at(floating, quantised_values, next_to_knots(quantised_values, step));
    if (!there.ok()) return there.error();
    everywhere = everywhere && finite(*there);
    right.widen(*there);
  }
  if (everywhere) return {};
  auto domain_end = at_domain_end(floating, quantised_values);
  if (!domain_end.ok()) return domain_end.error();
  right.widen(*domain_end);
  for (std::size_t i = 0; i < given.low.size(); ++i)  // beyond the end of the domain nothing is promised
    if (!std::isfinite(given.low[i])) right.low[i] = right.high[i] = given.low[i];
  return {};
}

}  // namespace

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> list(count(tensor));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = element_as_double(tensor.type.dtype, tensor.data.data(), i);
  return list;
}

Tensor real(const Tensor& quantised_values) {
  if (!quantised_values.type.quantised()) return quantised_values;
  std::vector<double> values;
  for (std::size_t i = 0; i < count(quantised_values); ++i) {
    const auto [scale, zero] = scale_at(quantised_values.type, i);
    values.push_back(
        (static_cast<double>(element_as_integer(quantised_values.type.dtype, quantised_values.data.data(), i)) - zero) *
        scale);
  }
  return {{DType::f32, quantised_values.type.shape, {}}, constant_bytes(DType::f32, values)};
}

std::vector<Tensor> reals(const std::vector<Tensor>& quantised_values) {
  std::vector<Tensor> result;
  for (const Tensor& t : quantised_values) result.push_back(real(t));
  return result;
}

std::vector<Tensor> as_bytes(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors)
    if (t.type.dtype == DType::u8) t.type.dtype = DType::i8;
  return tensors;
}

std::vector<Tensor> under_types(std::vector<Tensor> results, const std::vector<TensorType>& types) {
  for (std::size_t k = 0; k < results.size() && k < types.size(); ++k)
    if (types[k].dtype == DType::u8) results[k].type.dtype = DType::u8;
  return results;
}

Tensor quantise_as(const Tensor& real, const TensorType& type) {
  if (!type.quantised()) return real;
  const auto range = quantised_range(type);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count(real); ++i) {
    const double code =
        std::nearbyint(element_as_double(real.type.dtype, real.data.data(), i) / type.scales->scale[0]) +
        static_cast<double>(type.scales->zero_point[0]);
    values.push_back(static_cast<std::int64_t>(
        std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest))));
  }
  return {type, constant_bytes(type.dtype, values)};
}

Distance distance(const std::vector<double>& low, const std::vector<double>& high, const Tensor& got,
                  const TensorType& type) {
  Distance d;
  const std::size_t n = count(got);
  for (std::size_t i = 0; i < n; ++i) {
    double least = low[i], most = high[i];
    if (!std::isfinite(least) || !std::isfinite(most)) continue;
    double found = element_as_double(got.type.dtype, got.data.data(), i);
    if (type.quantised()) {
      const auto [scale, zero] = scale_at(type, i);
      const auto quantised_values = quantised_range(type);
      auto in_steps = [&, s = scale, z = zero](double x) {
        return std::clamp(x / s + z, static_cast<double>(quantised_values.lowest),
                          static_cast<double>(quantised_values.highest)) -
               z;
      };
      least = in_steps(least), most = in_steps(most), found -= zero;
    }
    const double off = std::fabs(found - std::clamp(found, least, most));
    d.worst = std::max(d.worst, off);
    d.rms += off * off / static_cast<double>(n);
    d.signal += most * most / static_cast<double>(n);
  }
  d.rms = std::sqrt(d.rms);
  d.signal = std::sqrt(d.signal);
  return d;
}

Result<std::vector<NodeResult>> node_results(const Graph& quantised, const std::vector<Tensor>& inputs,
                                             const tosa::Spec& spec, std::vector<Tensor>& outputs) {
  std::map<ValueId, Tensor> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[quantised.inputs[i]] = inputs[i];
  const auto used = used_values(quantised);
  std::vector<NodeResult> pieces;
  for (const Node& node : quantised.nodes) {
    const Alone integer = alone(quantised, node, used, false), floating = alone(quantised, node, used, true);
    std::vector<Tensor> operands;
    for (ValueId v : integer.operands) operands.push_back(values.at(v));
    auto got = run_alone(integer, operands, &spec);
    if (!got.ok()) return got.error();
    auto want = run_alone(floating, reals(operands), nullptr);
    if (!want.ok()) return want.error();
    const Rule rule = find_aten(node.op).rule;
    const bool lines = rule->tabulates && operands.at(0).type.quantised() && operands[0].type.dtype == DType::i16;
    for (std::size_t k = 0; k < got->size(); ++k) {
      Bounds right{numbers((*want)[k]), numbers((*want)[k])};
      if (lines) TOSAIC_CHECK(widen_to_knots(floating, operands[0], right));
      const TensorType& type = quantised[integer.results[k]].type;
      pieces.push_back({node.op.text(), rule, type, distance(right.low, right.high, (*got)[k], type)});
      values[integer.results[k]] = {type, (*got)[k].data};
    }
  }
  outputs.clear();
  for (ValueId v : quantised.outputs)
    outputs.push_back(quantised[v].is_constant() ? Tensor{quantised[v].type, quantised[v].constant} : values.at(v));
  return pieces;
}

}  // namespace tosaic::domain
