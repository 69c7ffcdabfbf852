// SPDX-License-Identifier: Apache-2.0
#include "quantise/state_samples.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>

#include "execute/executable.h"
#include "lower/lower.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

double largest(const Tensor& tensor) {
  double found = 0;
  const auto count = static_cast<std::size_t>(tensor.type.shape.elements());
  for (std::size_t i = 0; i < count; ++i)
    if (const double x = element_as_double(tensor.type.dtype, tensor.data.data(), i); std::isfinite(x))
      found = std::max(found, std::abs(x));
  return found;
}

// A range that still grew with the last run will be too small for the runs that follow.
void say_growing(const State& state, const std::vector<double>& sizes, const Sink& sink) {
  const bool grew = std::ranges::adjacent_find(sizes, std::greater_equal<>()) == sizes.end();
  if (!sink || !grew) return;
  const std::size_t runs = sizes.size() - 1;
  const std::string when =
      fmt::format("in {} run{}", runs == 1 ? "the only" : fmt::format("each of the {}", runs), runs == 1 ? "" : "s");
  Diagnostic d =
      warning("calibrate.state-range", fmt::format("buffer '{}' became larger {} of the calibration", state.name, when))
          .hint(
              "give samples in order, as many as there are runs between two resets; keep what grows "
              "without end float with --override 'MODULE: float'");
  d.notes.emplace_back("larger contents than those of the samples saturate");
  sink(std::move(d));
}

}  // namespace

std::vector<Tensor> first_contents(const Graph& graph, const StatesAsTensors& states, const StateContents& contents) {
  std::vector<Tensor> tensors;
  for (const State& s : states.states()) {
    const TensorType& type = graph[s.input].type;
    if (const auto left = contents.find(s.name); left != contents.end() && left->second.type == type) {
      tensors.push_back(left->second);
      continue;
    }
    tensors.push_back({type, s.initial.null() ? Bytes::of(std::vector<std::byte>(type.storage_bytes())) : s.initial});
  }
  return tensors;
}

Result<execute::Executable> runnable(const Graph& graph, int threads) {
  TOSAIC_TRY(Lowered lowered, lower(graph));
  tidy(lowered.graph);
  return execute::Executable::of_lowering(std::move(lowered.graph), {.threads = threads});
}

Result<std::vector<std::vector<Tensor>>> with_states(const Graph& graph, std::vector<std::vector<Tensor>> samples,
                                                     const StatesAsTensors& states, StateContents& contents,
                                                     int threads, const Sink& sink) {
  const auto count = static_cast<std::ptrdiff_t>(states.states().size());
  if (count == 0) return samples;
  std::vector<Tensor> now = first_contents(graph, states, contents);
  std::vector<std::vector<double>> sizes(now.size());
  const auto look = [&] {
    for (std::size_t i = 0; i < now.size(); ++i)
      if (is_float(now[i].type.dtype)) sizes[i].push_back(largest(now[i]));
  };
  auto program = runnable(graph, threads);
  if (!program.ok() && program.error().internal) return program.error();
  look();
  for (std::vector<Tensor>& sample : samples) {
    sample.insert(sample.end(), now.begin(), now.end());
    if (!program.ok()) continue;  // calibration itself says what cannot be run
    TOSAIC_TRY(std::vector<Tensor> results, program->run(sample));
    now.assign(results.end() - count, results.end());
    look();
  }
  for (std::size_t i = 0; i < now.size(); ++i)
    if (sizes[i].size() > 1) say_growing(states.states()[i], sizes[i], sink);
  for (std::size_t i = 0; i < now.size(); ++i) contents.insert_or_assign(states.states()[i].name, std::move(now[i]));
  return samples;
}

}  // namespace tosaic
