// SPDX-License-Identifier: Apache-2.0
#include "quantise/uniform_samples.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace tosaic {
namespace {

// By value: 0 and -0 are one.
bool repeats(const Tensor& tensor, double value) {
  const auto count = static_cast<std::size_t>(tensor.type.shape.elements());
  for (std::size_t i = 0; i < count; ++i)
    if (element_as_double(tensor.type.dtype, tensor.data.data(), i) != value) return false;
  return true;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

bool is_constant(std::span<const std::vector<Tensor>> samples, std::size_t input) {
  const Tensor& first = samples[0][input];
  if (first.type.shape.elements() == 0) return false;
  const double value = element_as_double(first.type.dtype, first.data.data(), 0);
  return std::ranges::all_of(samples, [&](const std::vector<Tensor>& s) { return repeats(s[input], value); });
}

}  // namespace

void say_uniform(const Graph& graph, std::span<const std::vector<Tensor>> samples, const Sink& sink) {
  const auto whole = [&](const std::vector<Tensor>& sample) { return sample.size() == graph.inputs.size(); };
  if (!sink || samples.empty() || graph.inputs.empty() || !std::ranges::all_of(samples, whole)) return;
  bool constant = false;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph[graph.inputs[i]];
    if (!is_float(input.type.dtype) || !is_constant(samples, i)) continue;
    constant = true;
    const Tensor& first = samples[0][i];
    sink(warning("calibrate.constant", fmt::format("all elements of input '{}' are {:.3g} in {}", input.name,
                                                   element_as_double(first.type.dtype, first.data.data(), 0) + 0.0,
                                                   samples.size() == 1 ? "the sample" : "all samples"))
             .note("its range, and those of what is computed from it, hold little else: other values saturate")
             .hint("give typical inputs as samples"));
  }
  if (!constant && samples.size() > 1 && std::ranges::all_of(samples, [&](const std::vector<Tensor>& sample) {
        return std::ranges::equal(sample, samples[0], same);
      }))
    sink(warning("calibrate.same-samples", fmt::format("the {} samples are all the same", samples.size()))
             .note("ranges are those of one sample")
             .hint("give samples that differ as the model's inputs will; a loop may have given one array again and "
                   "again"));
}

}  // namespace tosaic
