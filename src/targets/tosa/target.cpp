// SPDX-License-Identifier: Apache-2.0
// TOSA itself: the payload is the TOSA flatbuffer, which tosaic, tosa_reference_model and Arm's tools run. Where that
// would be too large, and where methods share them, its large constants are data of the program next to it, under the
// names of their values; equal data are stored once.
#include "base/delegate_ids.h"
#include "targets/tosa/emit.h"

namespace tosaic {
namespace {

Target tosa_target(std::string name, std::string summary, const char* spec) {
  Target target{.name = std::move(name),
                .summary = std::move(summary),
                .family = "TOSA",
                .spec = *tosa::Spec::parse(spec),
                .delegate_id = delegate_ids::tosa,
                .emit = emit_tosa};
  target.in_place = target.keeps_variables = true;
  target.options = {external_weights()};
  if (!target.integer()) target.quantised_weights = QuantisedWeights::packed;
  return target;
}

}  // namespace

std::vector<Target> target_tosa() {
  return {tosa_target("tosa-int", "TOSA 1.0, integer profile with int16 activations and int4 weights",
                      "TOSA-1.0+INT+int16+int4"),
          tosa_target("tosa-fp", "TOSA 1.0, floating-point profile", "TOSA-1.0+FP")};
}

}  // namespace tosaic
