// SPDX-License-Identifier: Apache-2.0
// Ethos-U NPUs: the payload is the command stream that Vela makes of our TOSA, in ExecuTorch's block layout.
#include <fmt/format.h>
#include <filesystem>

#include "formats/tosa/tosa_file.h"
#include "formats/vela/vela.h"
#include "targets/ethos_u.h"
#include "targets/target.h"

namespace tosaic {
namespace {

// Vela's names of what ExecuTorch assumes when it is told nothing.
struct Defaults {
  const char *system_config, *memory_mode;
};

Defaults defaults_of(const Target& target) {
  if (target.name.starts_with("ethos-u55")) return {"Ethos_U55_High_End_Embedded", "Shared_Sram"};
  if (target.name.starts_with("ethos-u65")) return {"Ethos_U65_High_End", "Dedicated_Sram_384KB"};
  return {"Ethos_U85_SYS_DRAM_Mid", "Sram_Only"};
}

// Moves a blob to a .ptd file. ExecuTorch calls such a file's name without its ending the placement tag.
void move_out(vela::Blob& blob, const std::string& file, std::vector<ExternalData>& external) {
  if (file.empty()) return;
  const std::string key = vela::external_key(std::filesystem::path(file).stem().string(), blob.data);
  external.push_back({file, key, blob.data});
  blob = {{}, key};
}

Result<Emitted> emit(const Graph& graph, const Target& target, const EmitOptions& options) {
  VelaOptions how = options.vela;
  if (how.system_config.empty()) how.system_config = defaults_of(target).system_config;
  if (how.memory_mode.empty()) how.memory_mode = defaults_of(target).memory_mode;
  TOSAIC_TRY(const Bytes tosa, tosa_file::write(graph));
  TOSAIC_TRY(VelaResult made, run_vela(tosa, graph, target.name, how));
  Emitted emitted;
  move_out(made.program.commands, options.external_commands, emitted.external);
  move_out(made.program.weights, options.external_weights, emitted.external);
  TOSAIC_TRY(emitted.payload, vela::write(made.program));
  emitted.estimate = std::move(made.estimate);
  emitted.peer_seconds = made.seconds;
  return emitted;
}

}  // namespace

std::vector<Target> target_ethos_u() {
  struct Row {
    const char* family;
    const tosa::Product& product;
    void (*shape)(Graph&);
    std::vector<int> macs;
  };
  const Row rows[] = {{"u55", ethos_u::u55(), ethos_u::shape_for_u55, {32, 64, 128, 256}},
                      {"u65", ethos_u::u65(), ethos_u::shape_for_u55, {256, 512}},
                      {"u85", ethos_u::u85(), ethos_u::shape_for_small_u85, {128, 256}},
                      {"u85", ethos_u::u85(), ethos_u::shape_for_u85, {512, 1024, 2048}}};
  std::vector<Target> targets;
  for (const Row& row : rows)
    for (int macs : row.macs) {
      Target target{fmt::format("ethos-{}-{}", row.family, macs),
                    fmt::format("Arm {} with {} MACs per cycle, compiled by Vela", row.product.name, macs),
                    *tosa::Spec::parse("TOSA-1.0+INT+int16+int4"),
                    "EthosUBackend",
                    row.shape,
                    emit};
      target.spec.product = &row.product;
      targets.push_back(std::move(target));
    }
  return targets;
}

}  // namespace tosaic
