// SPDX-License-Identifier: Apache-2.0
// What every question about a program begins with: at which sizes, in which form, and for whom. compile, explain,
// supports and plan ask it here, so that they answer about one program.
#pragma once
#include "pipeline/options.h"

namespace tosaic {

// A program at numbers, for who answers about one graph.
struct AskedProgram {
  const Method* method = nullptr;
  Graph graph;      // at the first sizes that were chosen; what nobody chose, and the target lets vary, at its bounds
  tosa::Spec spec;  // of the target, with what the program's floats need
  bool varies = false;
};
// Errors: option.value, model.size, model.dynamic-shape, model.methods, and lower.sizes where no size is one of the
// program's.
Result<AskedProgram> asked_program(const ExportedProgram& program, const CompileOptions& options);

}  // namespace tosaic
