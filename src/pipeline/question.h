// SPDX-License-Identifier: Apache-2.0
// What every question about a program begins with: at which sizes, in which form, and for whom. compile, explain,
// supports and plan ask it here, so that they answer about one program.
#pragma once
#include "partition/normal_form.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/pipeline.h"

namespace tosaic {

// The graph at the sizes that the user chose; where the target lets sizes vary, symbols that nobody chose stay. Errors:
// option.value, model.size, model.dynamic-shape.
Result<Graph> at_sizes_for(const Target& target, const Graph& graph, const std::vector<std::string>& choices);

// Of a compilation for a target that has become `spec`.
FormFor form_for(const CompileOptions& options, const tosa::Spec& spec);

// A program at numbers, for who answers about one graph.
struct AskedProgram {
  const Method* method = nullptr;
  Graph graph;      // at the first sizes that were chosen; what nobody chose, and the target lets vary, at its bounds
  tosa::Spec spec;  // of the target, with what the program's floats need
  bool varies = false;
};
// Errors: those, model.methods, and lower.sizes where no size is one of the program's.
Result<AskedProgram> asked_program(const ExportedProgram& program, const CompileOptions& options);

}  // namespace tosaic
