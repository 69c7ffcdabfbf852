// SPDX-License-Identifier: Apache-2.0
// The C++ API of tosaic: compile PyTorch programs, explain what a target takes, run artifacts, inspect files.
//
//   Program (program.hpp)  --compile (compile.hpp)-->  Artifact  --load (session.hpp)-->  Session  --run-->  tensors
//
// The command-line tool is a thin user of it (files.hpp adds the paths). No function throws, out of memory included
// (memory.exhausted), and none prints; notes and warnings go to the callback that was given. Functions may be called
// from any thread, an object from one thread at a time unless its header says more.
#pragma once
#include <string>
#include <vector>

#include "tosaic/bundle.hpp"
#include "tosaic/compile.hpp"
#include "tosaic/evaluation.hpp"
#include "tosaic/files.hpp"
#include "tosaic/program.hpp"
#include "tosaic/report.hpp"
#include "tosaic/session.hpp"
#include "tosaic/sweep.hpp"

namespace tosaic {

struct OperatorInfo {
  std::string name;                  // "relu"
  std::vector<std::string> schemas;  // PyTorch's, one per overload
  std::string summary;
  std::string rule;  // how its integer form follows: "pointwise", "transparent", ...
};
TOSAIC_API std::vector<OperatorInfo> operators();  // every PyTorch operator that tosaic lowers, sorted by name
// Is there a lowering of this overload ("aten.relu.default")? For those who want to say a call in other operators
// first.
TOSAIC_API bool knows_operator(const std::string& overload);
// docs/operators.md: every overload, and which targets take it. Takes a second or two. Errors: memory.exhausted.
TOSAIC_API Result<std::string> operator_page();

// What an error code means and what to do, as text: of "quantise.overflow", of its family "quantise", or the list of
// all families for "". Errors: usage.value (there is no such code).
TOSAIC_API Result<std::string> explain_error(const std::string& code);
TOSAIC_API std::string error_page();  // docs/errors.md: every family, with its codes

TOSAIC_API std::string version();  // "0.1.0"

}  // namespace tosaic
