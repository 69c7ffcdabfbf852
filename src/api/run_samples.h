// SPDX-License-Identifier: Apache-2.0
// A run over a data set: outputs of all samples, one behind the other.
#pragma once
#include "base/system/output.h"
#include "tosaic/files.hpp"

namespace tosaic {

// The file of one output.
std::string output_file(const std::string& folder, std::size_t number);

// Does what is asked for go with samples? Error: run.samples.
Status check_samples(const RunRequest& request);
// Every sample, several at once; the stacked outputs go to `files`. Errors: run.rows, evaluate.*, those of
// Session::run.
Status run_samples(const Session& session, const RunRequest& request, const Messages& messages, Outputs& files,
                   RunOutcome& outcome);

}  // namespace tosaic
