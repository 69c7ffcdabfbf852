// SPDX-License-Identifier: Apache-2.0
// A program held against its floats: the entry, and the errors of its samples.
#include <filesystem>
#include <optional>
#include <vector>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "api/session_tensors.h"
#include "pipeline/pipeline.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

// The program as it would be written, loaded on its device.
Result<Session> on_its_device(const Program& program, const std::string& target, const Options& options,
                              const CompileOptions& how) {
  if (how.in_integers() || how.target.device.empty())
    return error("compare.device", how.in_integers()
                                       ? "integers come out of a device as out of the comparison, bit for bit"
                                       : how.target.name + " says of no device what runs its programs")
        .hint("leave --on-device out");
  Callbacks silent;
  silent.message = [](const Diagnostic&) {};
  TOSAIC_TRY(const Artifact artifact, compile(program, target, options, silent, SampleSource()));
  return Session::load(artifact, {.device = how.target.device});
}

}  // namespace

Result<Comparison> compare(const Program& given, const std::string& target, const Options& options,
                           const Callbacks& callbacks, const SampleSource& samples, const Evaluation& shown) {
  return guarded(given.name(), [&]() -> Result<Comparison> {
    TOSAIC_TRY(const CompileOptions how, compile_options_for(target, options));
    TOSAIC_TRY(const Program program, given.with_input_layout(how.input_layout));
    TOSAIC_TRY(const CompileCallbacks calls, callbacks_of(program, callbacks, samples));
    ShownSamples on{samples_from(shown.samples), shown.labels};
    std::optional<Session> session;
    if (shown.on_device) {
      TOSAIC_TRY(session, on_its_device(given, target, options, how));
      on.device = [&](const std::vector<Tensor>& sample) { return results_of(*session, sample); };
    }
    TOSAIC_TRY(Comparison found, compare_model(program.impl().exported, how, calls, on));
    if (session) found.device = session->device();
    found.model = std::filesystem::path(program.name()).filename().string();
    return found;
  });
}

}  // namespace tosaic
