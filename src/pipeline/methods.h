// SPDX-License-Identifier: Apache-2.0
// Several methods in one .pte: those of the program, and of each at several sizes one for each combination, which
// tosaic's runtime chooses by what it is given. Weights are stored once, states are one for all.
#pragma once
#include <string>
#include <vector>

#include "pipeline/context.h"

namespace tosaic {

// One method of the file. A program's first size has the program's own name, the others say their sizes:
// "forward_4x128", in the order of the choices.
struct SizedMethod {
  std::string name;
  std::vector<std::string> sizes;  // "x.0=4", one for each choice
  const Method* method = nullptr;
};

// "x.0=1,4" with "x.1=64,128" are four methods. Of several programs each takes the choices of sizes that it has.
// Errors: option.value; plan.names-nothing, for a plan of another method.
Result<std::vector<SizedMethod>> sized_methods(const ExportedProgram& program, const CompileOptions& options);

// What the user gives for this method.
SamplesFor samples_given(const Method& method, const CompileCallbacks& callbacks);

// All of them as one program: each finds the states as the one before left them, and a state has one scale in all.
// Placements and verdicts are those of the first method.
Result<Compiled> compile_methods(const std::vector<SizedMethod>& methods, const CompileOptions& options,
                                 const CompileCallbacks& callbacks, const Request& request);

}  // namespace tosaic
