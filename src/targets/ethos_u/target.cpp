// SPDX-License-Identifier: Apache-2.0
// Ethos-U NPUs: the payload is the command stream that Vela makes of our TOSA, in ExecuTorch's block layout.
#include <fmt/format.h>
#include <filesystem>

#include "base/delegate_ids.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/vela.h"
#include "targets/board_options.h"
#include "targets/ethos_u/products.h"
#include "targets/ethos_u/vela.h"
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

// What Vela made takes and gives what the graph does, tensor for tensor: the program calls it so.
Status same_interface(const Graph& graph, const vela::Payload& made) {
  const auto bad = [](std::string what) {
    return error("vela.interface", "Vela made a command stream that does not fit its graph: " + what)
        .hint("--emit vela=DIR keeps the files that Vela was given and wrote");
  };
  if (made.inputs.size() != graph.inputs.size() || made.outputs.size() != graph.outputs.size())
    return bad(fmt::format("it takes {} inputs and gives {} outputs, the graph has {} and {}", made.inputs.size(),
                           made.outputs.size(), graph.inputs.size(), graph.outputs.size()));
  const auto check = [&](const char* kind, const std::vector<ValueId>& values,
                         const std::vector<vela::Tensor>& tensors) -> Status {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const TensorType& type = graph[values[i]].type; tensors[i].bytes() != std::int64_t(type.storage_bytes()))
        return bad(fmt::format("{} {} has {} bytes, %{} is {} ({} bytes)", kind, i, tensors[i].bytes(),
                               graph[values[i]].name, to_string(type), type.storage_bytes()));
    return {};
  };
  TOSAIC_CHECK(check("input", graph.inputs, made.inputs));
  return check("output", graph.outputs, made.outputs);
}

VelaOptions vela_options(const Target& target, const Options& options, const Destination& to) {
  VelaOptions how{options.text("vela"),        options.text("system-config"),
                  options.text("memory-mode"), options.text("vela-config"),
                  options.list("vela-flags"),  std::chrono::seconds(options.number("vela-timeout")),
                  options.text("vela-files"),  to.number};
  if (how.system_config.empty()) how.system_config = defaults_of(target).system_config;
  if (how.memory_mode.empty()) how.memory_mode = defaults_of(target).memory_mode;
  return how;
}

Status ready(const Target& target, const Options& options) {
  const VelaOptions how = vela_options(target, options, {});
  const Defaults usual = defaults_of(target);
  return vela_ready(target.name, how, how.system_config != usual.system_config || how.memory_mode != usual.memory_mode);
}

Result<Emitted> emit(const Graph& graph, const Target& target, const Options& options, const Destination& to) {
  const VelaOptions how = vela_options(target, options, to);
  TOSAIC_TRY(const Rope file, tosa_file::write(graph));
  const Bytes tosa = file.joined();
  TOSAIC_TRY(VelaResult made, run_vela(tosa, graph, target.name, how));
  TOSAIC_CHECK(same_interface(graph, made.program));
  Emitted emitted;
  if (is_untested_vela(made.version)) emitted.notes.push_back(untested_vela(made.version));
  move_out(made.program.commands, options.of_kind("external", "commands"), emitted.external);
  move_out(made.program.weights, options.of_kind("external", "weights"), emitted.external);
  TOSAIC_TRY(emitted.payload, vela::write(made.program));
  emitted.scratch_bytes = made.program.scratch_bytes;
  emitted.estimate = std::move(made.estimate);
  emitted.peer_seconds = made.seconds;
  emitted.files = std::move(made.files);
  return emitted;
}

std::vector<OptionInfo> options() {
  using Kind = OptionInfo::Kind;
  return {
      {.name = "vela", .kind = Kind::file, .sentence = "the vela executable, when it is not on PATH"},
      {.name = "vela-config", .kind = Kind::file, .sentence = ".ini of your own, with the sections named below"},
      {.name = "system-config",
       .kind = Kind::text,
       .sentence = "System_Config section; default: the product's",
       .placeholder = "NAME"},
      {.name = "memory-mode",
       .kind = Kind::text,
       .sentence = "Memory_Mode section; default: the product's",
       .placeholder = "NAME"},
      {.name = "vela-flags",
       .kind = Kind::list,
       .sentence = "further options for vela, e.g. --vela-flags=--optimise=Size",
       .placeholder = "FLAG"},
      {.name = "vela-files",
       .kind = Kind::file,
       .sentence = "folder that keeps what Vela was given and wrote, also when it fails: what --emit vela=DIR sets",
       .placeholder = "DIR"},
      {.name = "vela-timeout",
       .kind = Kind::number,
       .default_value = "3600",
       .sentence = "the most that vela may take for a delegate, 0: as long as it likes",
       .lowest = 0,
       .highest = 1000000,
       .placeholder = "SECONDS"},
      {.name = "external",
       .kind = Kind::pairs,
       .sentence = "keep in a data file instead of the .pte: weights=FILE.ptd (TOSA targets, too), commands=FILE.ptd",
       .allowed = {"weights", "commands"}},
      sram_of_board(),
      {.name = "scratch",
       .kind = Kind::size,
       .sentence =
           "what the board lends a delegate while it runs: one that takes more is refused, with the tensors that do"},
      flash_of_board(),
      {.name = "self-check",
       .kind = Kind::flag,
       .default_value = "true",
       .sentence = "write the program without trying it in the simulator on one sample first"}};
}

}  // namespace

std::vector<Target> target_ethos_u() {
  struct Row {
    const char* family;
    const tosa::Product& product;
    void (*shape)(Graph&, const Rewrites&);
    std::vector<int> macs;
  };
  const Row rows[] = {{"u55", ethos_u::u55(), ethos_u::shape_for_small_u55, {32, 64}},
                      {"u55", ethos_u::u55(), ethos_u::shape_for_u55, {128, 256}},
                      {"u65", ethos_u::u65(), ethos_u::shape_for_u65, {256, 512}},
                      {"u85", ethos_u::u85(), ethos_u::shape_for_small_u85, {128, 256}},
                      {"u85", ethos_u::u85(), ethos_u::shape_for_u85, {512, 1024, 2048}}};
  std::vector<Target> targets;
  for (const Row& row : rows)
    for (int macs : row.macs) {
      Target target{.name = fmt::format("ethos-{}-{}", row.family, macs),
                    .summary = fmt::format("Arm {} with {} MACs per cycle, compiled by Vela", row.product.name, macs),
                    .family = "Ethos-U",
                    .spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4"),
                    .delegate_id = delegate_ids::ethos_u,
                    .shape = row.shape,
                    .emit = emit};
      target.spec.product = &row.product;
      target.ready = ready;
      target.self_check = true;
      target.options = options();
      target.emits = EmitKind{"vela", "folder of Vela's", "vela=DIR (Ethos-U: what Vela was given and wrote)",
                              is_vela_file, "vela-files"};
      target.device = "ethos-u";
      target.simulated = target.estimates = true;
      targets.push_back(std::move(target));
    }
  return targets;
}

}  // namespace tosaic
