// SPDX-License-Identifier: Apache-2.0
// TOSA 0.80, for tools from before TOSA 1.0: the same lowering within what 0.80's files can say.
#include "targets/target.h"
#include "base/delegate_ids.h"
#include "formats/tosa_080/tosa_080.h"

namespace tosaic {
namespace {

constexpr tosa::Product version{"TOSA 0.80", tosa_080::beyond};

Result<Emitted> emit(const Graph& graph, const Target&, const Options&, const Destination&) {
  TOSAIC_TRY(Rope payload, tosa_080::write(graph));
  return Emitted{std::move(payload)};
}

Target profile(std::string name, std::string summary, const char* spec) {
  Target target{.name = std::move(name),
                .summary = std::move(summary),
                .family = "TOSA 0.80",
                .spec = *tosa::Spec::parse(spec),
                .delegate_id = delegate_ids::tosa,
                .emit = emit};
  target.spec.product = &version;
  target.tabled = false;
  target.payload_is_tosa = true;
  return target;
}

}  // namespace

std::vector<Target> target_tosa_080() {
  return {profile("tosa-0.80-bi", "TOSA 0.80, base inference profile: integers", "TOSA-1.0+INT+int16+int4"),
          profile("tosa-0.80-mi", "TOSA 0.80, main inference profile: floats and integers",
                  "TOSA-1.0+FP+INT+int16+int4+fft")};
}

}  // namespace tosaic
