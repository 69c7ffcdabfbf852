// SPDX-License-Identifier: Apache-2.0
// A TOSA graph as the bytes of a VGF file: by our own writers, or, for comparison, by the model converter of Arm's
// ML SDK as a child process (PyPI package `ai_ml_sdk_model_converter`).
#pragma once
#include <string>
#include <vector>

#include "base/rope.h"
#include "ir/graph.h"

namespace tosaic {

struct VgfOptions {
  std::string converter;           // "tosaic" or empty: ours; "sdk": `model-converter` on PATH; else its path
  std::vector<std::string> flags;  // of the model converter; ours knows those that change how a module is written
};
struct VgfResult {
  Rope file;
  double peer_seconds = 0;  // in the SDK's converter
};
// Errors: spirv.*, vgf.* (what the formats cannot say); vgf.converter-missing (says how to install it),
// vgf.converter-failed (with its own words), vgf.flag (one that our converter does not know).
Result<VgfResult> make_vgf(const Graph& graph, const VgfOptions& options);

}  // namespace tosaic
