// SPDX-License-Identifier: Apache-2.0
// VGF, what the ML extensions for Vulkan run: the payload is a VGF file, in ExecuTorch's program as it is.
#include "targets/target.h"
#include "base/delegate_ids.h"
#include "targets/vgf/converter.h"

namespace tosaic {
namespace {

Result<Emitted> emit(const Graph& graph, const Target&, const Options& options, const Destination&) {
  TOSAIC_TRY(VgfResult made, make_vgf(graph, {options.text("vgf-converter"), options.list("vgf-flags")}));
  Emitted emitted{std::move(made.file)};
  emitted.peer_seconds = made.peer_seconds;
  return emitted;
}

}  // namespace

std::vector<Target> target_vgf() {
  Target target{.name = "vgf",
                .summary = "VGF for the ML extensions of Vulkan, float and integer",
                .family = "VGF",
                .spec = *tosa::Spec::parse("TOSA-1.0+FP+INT+int16+int4"),
                .delegate_id = delegate_ids::vgf,
                .emit = emit};
  using Kind = OptionInfo::Kind;
  target.options = {
      {.name = "vgf-converter",
       .kind = Kind::file,
       .default_value = "tosaic",
       .sentence = "tosaic: our own; sdk: Arm's model-converter, for comparison; or the path of one"},
      {.name = "vgf-flags",
       .kind = Kind::list,
       .sentence = "flags of the model converter; our own has --disable-replicated-composites, --enable-bespoke and "
                   "--custom-op-domain-to-opcode=DOMAIN:NUMBER",
       .placeholder = "FLAG"}};
  target.emits = EmitKind{"vgf", "VGF file", "vgf=PATH (target vgf)"};
  target.device = "vulkan-ml";
  return {target};
}

}  // namespace tosaic
