// SPDX-License-Identifier: Apache-2.0
// TOSA itself: the payload is the TOSA flatbuffer, which tosaic, tosa_reference_model and Arm's tools run.
#include "targets/target.h"
#include "formats/tosa/tosa_file.h"

namespace tosaic {
namespace {

Result<Emitted> emit(const Graph& graph, const Target&, const Options&, const std::string&) {
  TOSAIC_TRY(Bytes payload, tosa_file::write(graph));
  return Emitted{std::move(payload)};
}

Target tosa_target(std::string name, std::string summary, const char* spec) {
  return {std::move(name), std::move(summary), "TOSA", *tosa::Spec::parse(spec), "TOSABackend", nullptr, emit};
}

}  // namespace

std::vector<Target> target_tosa() {
  return {tosa_target("tosa-int", "TOSA 1.0, integer profile with int16 activations and int4 weights",
                      "TOSA-1.0+INT+int16+int4"),
          tosa_target("tosa-fp", "TOSA 1.0, floating-point profile", "TOSA-1.0+FP")};
}

}  // namespace tosaic
