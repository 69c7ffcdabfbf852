// SPDX-License-Identifier: Apache-2.0
#include "quantise/finite_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/states.h"
#include "quantise/as_f32.h"
#include "quantise/state_samples.h"
#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

constexpr int most_tried = 16;  // samples, where the program replaces what they hold

bool all_finite(const Tensor& tensor) {
  if (!is_float(tensor.type.dtype)) return true;
  const Bytes floats = as_f32(tensor);
  const std::span<const float> x = floats.as<float>();
  return simd::bulk_loops().extremes(x.data(), x.size()).all_finite;
}

struct Found {
  std::size_t input = 0, element = 0;
  double value = 0;  // NaN before infinities
};
std::optional<Found> not_finite(std::span<const Tensor> tensors) {
  std::optional<Found> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (all_finite(tensor)) continue;
    const auto count = static_cast<std::size_t>(tensor.type.shape.elements());
    for (std::size_t e = 0; e < count; ++e) {
      const double x = element_as_double(tensor.type.dtype, tensor.data.data(), e);
      if (std::isfinite(x) || (found && !std::isnan(x))) continue;
      found = Found{i, e, x};
      if (std::isnan(x)) return found;
    }
  }
  return found;
}

std::string position(const Shape& shape, std::size_t element) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
  auto rest = static_cast<std::int64_t>(element);
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at[static_cast<std::size_t>(d)] = rest % shape.size(d);
    rest /= shape.size(d);
  }
  return fmt::format("[{}]", fmt::join(at, ", "));
}

}  // namespace

Status finite_samples(const Graph& graph, std::span<const std::vector<Tensor>> samples, int threads) {
  std::vector<std::pair<std::size_t, Found>> bad;
  for (std::size_t s = 0; s < samples.size(); ++s)
    if (samples[s].size() == graph.inputs.size())
      if (const auto found = not_finite(samples[s])) bad.emplace_back(s, *found);
  if (bad.empty()) return {};
  Graph stateless = graph;
  const StatesAsTensors states(stateless);
  const std::vector<Tensor> contents = first_contents(stateless, states, {});
  auto program = runnable(stateless, threads);
  if (!program.ok()) return {};  // what calibration finds of it is said there
  for (std::size_t i = 0; i < std::min<std::size_t>(bad.size(), most_tried); ++i) {
    const auto& [s, found] = bad[i];
    std::vector<Tensor> inputs = samples[s];
    inputs.insert(inputs.end(), contents.begin(), contents.end());
    const auto results = program->run(inputs);
    const auto given = results.ok() ? not_finite(*results) : std::nullopt;
    if (!given || !(std::isnan(given->value) || std::isnan(found.value))) continue;
    const Value& input = graph[graph.inputs[found.input]];
    const char* what = std::isnan(found.value) ? "NaN" : found.value < 0 ? "-inf" : "inf";
    Diagnostic why =
        error("calibrate.not-a-number", fmt::format("sample {} has {} in input '{}', at {}", s, what, input.name,
                                                    position(input.type.shape, found.element)));
    why.notes.push_back(
        fmt::format("what the program gives for it has {}", std::isnan(given->value) ? "NaN" : "infinities"));
    if (bad.size() > 1)
      why.notes.push_back(fmt::format("{} of {} samples have NaN or infinities", bad.size(), samples.size()));
    return std::move(why).hint("leave such samples out, or look at how they were made; samples count from 0");
  }
  return {};
}

}  // namespace tosaic
