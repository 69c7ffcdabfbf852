// SPDX-License-Identifier: Apache-2.0
// On a Vulkan device: a VGF file by the ML extensions, a TOSA graph by compute shaders.
#pragma once
#include "formats/vgf/vgf.h"
#include "ir/graph.h"
#include "session/runnable.h"

namespace tosaic {

// Errors: vgf.empty, those of vulkan::Model::load.
Result<RunnablePtr> run_vgf_on_vulkan(vgf::File file, const SessionOptions& options);
// `interface` is the graph's. Errors: those of shaders::compile and vulkan::ComputeModel::load.
Result<RunnablePtr> run_on_vulkan(Graph graph, const SessionOptions& options, Interface interface);

}  // namespace tosaic
