// SPDX-License-Identifier: Apache-2.0
// A TOSA graph has no place of its own: it runs on the CPU, or on a Vulkan device by compute shaders, or as a VGF file.
#pragma once
#include "ir/graph.h"
#include "session/source.h"

namespace tosaic {

// Of a graph that was verified. Errors: run.device, those of the executors.
Result<RunnablePtr> run_graph(Graph graph, const Source& source, const SessionOptions& options);
// Of one that somebody wrote: held to the standard first. Errors: tosa.*, too.
Result<RunnablePtr> run_given_graph(Graph graph, const Source& source, const SessionOptions& options);

}  // namespace tosaic
