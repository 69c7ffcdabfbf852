// SPDX-License-Identifier: Apache-2.0
#include "compare/rounding_noise.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/system/thread_pool.h"
#include "compare/difference.h"
#include "compare/layers.h"
#include "compare/watched.h"
#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

constexpr std::size_t most_samples = 8;

// What is left of a float program when one of its tensors is given.
class Rest {
 public:
  static std::optional<Rest> after(const Graph& program, ValueId given) {
    Graph rest = program;
    for (Node& node : rest.nodes)
      for (ValueId& v : node.outputs)
        if (v == given) v = rest.add_value(rest[v].name + ".replaced", rest[v].type);
    if (std::ranges::find(rest.inputs, given) == rest.inputs.end()) rest.inputs.push_back(given);
    const StatesAsTensors states(rest);
    drop_dead_nodes(rest);
    std::vector<char> read(rest.values.size(), 0);
    for (const Node& node : rest.nodes)
      for (ValueId v : node.inputs)
        if (v != no_value) read[v] = 1;
    for (ValueId v : rest.outputs) read[v] = 1;
    std::erase_if(rest.inputs, [&](ValueId v) { return !read[v]; });
    if (std::ranges::find(rest.inputs, given) == rest.inputs.end()) return std::nullopt;  // no result depends on it
    std::vector<ValueId> reads = rest.inputs;
    auto lowered = lower(rest);
    if (!lowered.ok()) return std::nullopt;
    tidy(lowered->graph);
    auto made = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
    if (!made.ok()) return std::nullopt;
    return Rest(given, std::move(reads), *std::move(made));
  }

  std::optional<std::vector<Tensor>> run(const Watched& floats, const Tensor& in_place) {
    std::vector<Tensor> inputs;
    for (ValueId v : reads_) {
      const Tensor* x = v == given_ ? &in_place : floats.at(v);
      if (!x) return std::nullopt;
      inputs.push_back(*x);
    }
    auto results = program_.run(inputs);
    if (!results.ok()) return std::nullopt;
    return *std::move(results);
  }

 private:
  Rest(ValueId given, std::vector<ValueId> reads, execute::Executable program)
      : given_(given), reads_(std::move(reads)), program_(std::move(program)) {}

  ValueId given_;
  std::vector<ValueId> reads_;
  execute::Executable program_;
};

// As the quantised values of the type say it.
Tensor rounded(const Tensor& floats, const TensorType& type) {
  const Tensor quantised = quantised_tensor(floats, type);
  const double scale = type.scales->scale[0];
  const std::int64_t zero = type.scales->zero_point[0];
  float* to = nullptr;
  const auto count = static_cast<std::size_t>(floats.type.shape.elements());
  Bytes content = Bytes::fresh(count, to);  // may throw: GCC 12 destroys a half-made aggregate twice
  Tensor made{{DType::f32, floats.type.shape, {}}, std::move(content)};
  const std::span<const std::int8_t> q = quantised.data.as<std::int8_t>();
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(scale * static_cast<double>(q[i] - zero));
  return made;
}

bool passes_values(const Graph& graph, const Layer& layer) {
  return std::ranges::all_of(layer.calls,
                             [&](std::size_t n) { return find_aten(graph.nodes[n].op).rule->passes_values; });
}

struct Source {
  RoundingNoise found;
  ValueId wanted;
  std::optional<Rest> rest;
};

// Noise over signal, summed over the results that are floats.
double noise_of(const Graph& graph, const std::vector<Tensor>& got, const Watched& floats) {
  double sum = 0;
  for (std::size_t i = 0; i < graph.outputs.size() && i < got.size(); ++i) {
    const Tensor* wanted = floats.at(graph.outputs[i]);
    if (!wanted || wanted->type.dtype != DType::f32 || got[i].type.dtype != DType::f32) continue;
    const std::span<const float> a = TensorView{wanted->type, wanted->data.data()}.as<float>();
    const std::span<const float> b = TensorView{got[i].type, got[i].data.data()}.as<float>();
    double signal = 0, noise = 0;
    for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
      const double x = a[k], difference = static_cast<double>(b[k]) - x;
      if (!std::isfinite(x) || !std::isfinite(difference)) continue;
      signal += x * x;
      noise += difference * difference;
    }
    if (signal > 0) sum += noise / signal;
  }
  return sum;
}

}  // namespace

Result<std::vector<RoundingNoise>> find_rounding_noise(const FloatProgram& floats, const Graph& quantised,
                                                       const std::vector<std::vector<Tensor>>& samples,
                                                       const CompareHow& how) {
  const Counterparts counterparts(quantised, floats.graph);
  std::vector<Source> sources;
  std::vector<char> watched(floats.graph.values.size(), 0);
  const auto add = [&](ValueId v, ValueId wanted, const std::vector<std::size_t>& calls) {
    const TensorType& type = quantised[v].type;
    if (wanted == no_value || !type.quantised() || type.dtype != DType::i8 || !type.scales->per_tensor()) return;
    watched[wanted] = 1;
    sources.push_back({{v, calls, 0}, wanted, {}});
  };
  for (ValueId v : quantised.inputs) add(v, counterparts.of(v), {});
  for (const Node& node : quantised.nodes)
    if (node.op.is_conversion() && std::ranges::find(quantised.inputs, node.inputs[0]) != quantised.inputs.end())
      add(node.outputs[0], counterparts.of(node.outputs[0]), {});
  for (const Layer& layer : layers_of(quantised, floats, counterparts))
    if (!passes_values(quantised, layer)) add(layer.result, layer.wanted, layer.calls);  // else it was rounded before
  for (ValueId v : floats.graph.outputs) watched[v] = 1;
  TOSAIC_TRY(Watched reference, Watched::make(floats.graph, watched, {}, how.threads));
  ThreadPool& pool = ThreadPool::shared(how.threads);
  pool.run(static_cast<std::int64_t>(sources.size()), [&](std::int64_t i, int) {
    Source& source = sources[static_cast<std::size_t>(i)];
    source.rest = Rest::after(floats.graph, source.wanted);
  });
  const std::size_t step = (samples.size() + most_samples - 1) / most_samples;
  for (std::size_t s = 0; s < samples.size(); s += std::max<std::size_t>(step, 1)) {
    if (how.cancelled && how.cancelled()) return error("compile.cancelled", "the comparison was cancelled");
    TOSAIC_CHECK(reference.run(samples[s]));
    pool.run(static_cast<std::int64_t>(sources.size()), [&](std::int64_t i, int) {
      Source& source = sources[static_cast<std::size_t>(i)];
      const Tensor* x = reference.at(source.wanted);
      if (!source.rest || !x) return;
      if (const auto got = source.rest->run(reference, rounded(*x, quantised[source.found.value].type)))
        source.found.noise += noise_of(floats.graph, *got, reference);
    });
  }
  std::vector<RoundingNoise> found;
  for (const Source& source : sources) found.push_back(source.found);
  return found;
}

}  // namespace tosaic
