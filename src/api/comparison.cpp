// SPDX-License-Identifier: Apache-2.0
// A program held against its floats: the entry, and the errors of its samples.
#include <filesystem>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "pipeline/pipeline.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {

Result<Comparison> compare(const Program& program, const std::string& target, const Options& options,
                           const Callbacks& callbacks, const SampleSource& samples, const Evaluation& shown) {
  return guarded(program.name(), [&]() -> Result<Comparison> {
    TOSAIC_TRY(const CompileOptions how, compile_options_for(target, options));
    TOSAIC_TRY(const CompileCallbacks calls, callbacks_of(program, callbacks, samples));
    TOSAIC_TRY(Comparison found,
               compare_model(program.impl().exported, how, calls, {samples_from(shown.samples), shown.labels}));
    found.model = std::filesystem::path(program.name()).filename().string();
    return found;
  });
}

}  // namespace tosaic
