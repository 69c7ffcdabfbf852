// SPDX-License-Identifier: Apache-2.0
// What an Artifact holds: what the stages left, from which its pieces are made when somebody asks.
#pragma once
#include <string>

#include "pipeline/pipeline.h"
#include "tosaic/compile.hpp"

namespace tosaic {

struct Artifact::Impl {
  Program program;
  CompileOptions options;
  Request request;
  Compiled compiled;
  Summary summary;
};

// The files that the option `external` names; each is the piece "ptd/" + its name.
std::vector<std::string> external_names(const Compiled& compiled);
inline const std::string external_piece = "ptd/";
inline constexpr const char* manifest_piece = "manifest";  // no piece, but what a file of Artifact::manifest is called
// `with_nodes`: with the placement of every node, for those who have it from nowhere else.
std::string manifest(const Artifact::Impl& artifact, bool with_nodes = true);
// A piece as it goes to disk. Error: artifact.no-piece, those of writing it.
Result<Rope> file_of(const Artifact::Impl& artifact, std::string_view name);

// The stages over a program.
Result<Artifact> make_artifact(const Program& program, const std::string& target, const Options& options,
                               const Callbacks& callbacks, SamplesOfMethods samples, Request request);
// Whose samples are given under this name; empty: those of the only method. Error: calibrate.methods.
Result<const Method*> method_of_samples(const Program& program, const std::string& name);
// Samples by method; without a name they are those of the only one. Error: calibrate.methods.
Result<SamplesOfMethods> by_method(const Program& program, std::vector<std::pair<std::string, SamplesFor>> samples);
SamplesFor samples_from(const SampleSource& source);
Result<SamplesOfMethods> of_only_method(const Program& program, const SampleSource& samples);
// What the stages call for a question about the only method. `callbacks` must outlive it.
Result<CompileCallbacks> callbacks_of(const Program& program, const Callbacks& callbacks, const SampleSource& samples);

}  // namespace tosaic
