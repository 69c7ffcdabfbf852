// SPDX-License-Identifier: Apache-2.0
// The programs that a command is given: one file, or several as NAME=FILE, which are the methods of one program.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tosaic/files.hpp"
#include "tosaic/program.hpp"

namespace tosaic::tools {

struct Models {
  std::string only;  // the file; empty: several
  std::vector<std::pair<std::string, std::string>> methods;
};

// Errors: usage.models, with `command` in the example.
Result<Models> name_models(const std::vector<std::string>& given, const std::string& command);
// By the methods' names; the only one has none.
Result<std::vector<std::pair<std::string, Program>>> open_models(const Models& models, const Messages& messages);

// "samples.npz", or "prefill=prefill.npz" and another for each method, into the request. Error: usage.calibrate.
Status name_samples(const std::vector<std::string>& samples, CompileRequest& request);

}  // namespace tosaic::tools
