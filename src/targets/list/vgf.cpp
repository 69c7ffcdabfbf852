// SPDX-License-Identifier: Apache-2.0
// VGF, what the ML extensions for Vulkan run: the payload is a VGF file, in ExecuTorch's program as it is.
#include "targets/target.h"

namespace tosaic {
namespace {

Result<Emitted> emit(const Graph& graph, const Target&, const EmitOptions& options) {
  TOSAIC_TRY(VgfResult made, make_vgf(graph, options.vgf));
  Emitted emitted{std::move(made.file)};
  emitted.peer_seconds = made.peer_seconds;
  return emitted;
}

}  // namespace

std::vector<Target> target_vgf() {
  return {{"vgf", "VGF for the ML extensions of Vulkan, float and integer",
           *tosa::Spec::parse("TOSA-1.0+FP+INT+int16+int4"), "VgfBackend", nullptr, emit}};
}

}  // namespace tosaic
