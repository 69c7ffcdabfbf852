// SPDX-License-Identifier: Apache-2.0
#include "pipeline/context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "base/system/clock.h"
#include "quantise/weights_on_samples.h"

namespace tosaic {

// Among the files that are dumped of several methods.
static std::string folder_of(const Method& method, const CompileOptions& options, const Request& request) {
  return request.several_methods
             ? fmt::format("{}{}{}", method.name, options.sizes.empty() ? "" : " ", fmt::join(options.sizes, " "))
             : "";
}

Context::Context(const Method& of, const CompileOptions& how, const CompileCallbacks& calls, SamplesFor samples,
                 Request asked)
    : method(&of),
      exported(&of.graph),
      options(how),
      callbacks(calls),
      given(std::move(samples)),
      request(std::move(asked)),
      target(how.target),
      weights(std::make_shared<WeightsOnSamples>()) {
  options.quantise.request = how.quantise.request.of(of.name);
  if (!options.show.empty()) report = std::make_shared<GraphReport>(options.show, folder_of(of, options, request));
  graphs = calls.graphs ? calls.graphs : report.get();
}

void Context::say(Diagnostic why) const {
  if (callbacks.sink) callbacks.sink(std::move(why));
}

Status Context::note(const std::string& stage, const Graph& graph) const {
  if (graphs) graphs->made(stage, graph);
  if (report) TOSAIC_CHECK(report->written());
#ifndef NDEBUG
  if (auto bad = verify(graph); !bad.ok()) return internal_error("after " + stage + ": " + bad.error().message);
#endif
  return {};
}

Status Context::end(const std::string& stage) const {
  const auto now = SteadyClock::now();
  const double seconds = std::chrono::duration<double>(now - trace->begin).count();
  auto& stages = trace->stage_seconds;
  const auto known = std::ranges::find(stages, stage, &std::pair<std::string, double>::first);
  if (known == stages.end())
    stages.emplace_back(stage, seconds);
  else  // in another try, or at another size
    known->second += seconds;
  trace->begin = now;
  return not_cancelled();
}

Status Context::end(const std::string& stage, const Graph& graph) const {
  TOSAIC_CHECK(end(stage));
  return note(stage, graph);
}

Status Context::not_cancelled() const {
  if (!callbacks.cancelled || !callbacks.cancelled()) return {};
  return error("compile.cancelled", "the compilation was cancelled");
}

}  // namespace tosaic
