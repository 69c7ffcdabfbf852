// SPDX-License-Identifier: Apache-2.0
// tosaic compile: a .pt2 in, a .pte out, a short summary.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/diagnostic.h"
#include "tools/described.h"
#include "tools/models.h"
#include "tools/progress.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

// The nodes that stay behind, grouped by operator and reason.
std::string fallbacks(const Summary& outcome, bool verbose) {
  if (verbose) {  // each with its place, its line and what disagrees
    std::string all;
    for (const auto& n : outcome.nodes)
      if (n.delegate < 0 && !n.conversion) all += render(*n.reason, false);
    return all;
  }
  std::map<std::pair<std::string, std::string>, std::vector<const NodePlacement*>> groups;
  for (const auto& n : outcome.nodes)
    if (n.delegate < 0 && !n.conversion) groups[{n.op, one_line(*n.reason)}].push_back(&n);
  std::string text;
  for (const auto& [key, nodes] : groups) {
    text += fmt::format("  outside    {} x {}: {}", nodes.size(), key.first, key.second);
    if (!nodes[0]->place.empty()) text += fmt::format(" ({})", nodes[0]->place);
    text += "\n";
  }
  return text;
}

void print_estimate(Tool& tool, const NpuEstimate& e) {
  tool.print("  estimate   {:.3f} M cycles, {:.1f} inferences/s, {} NPU and {} CPU operators (Vela's figures)\n",
             e.cycles / 1e6, e.inferences_per_second, e.npu_operators, e.cpu_operators);
  tool.print("  memory     SRAM {}, flash {}", human_bytes(static_cast<std::size_t>(e.sram_bytes)),
             human_bytes(static_cast<std::size_t>(e.flash_bytes)));
  if (e.dram_bytes > 0) tool.print(", DRAM {}", human_bytes(static_cast<std::size_t>(e.dram_bytes)));
  tool.print("; SRAM traffic {} per inference\n", human_bytes(static_cast<std::size_t>(e.sram_traffic_bytes)));
}

void summary(Tool& tool, const CompileRequest& request, const Summary& outcome) {
  double total = 0;
  std::string stages;
  for (const auto& [name, seconds] : outcome.stage_seconds) {
    total += seconds;
    stages += fmt::format("{}{} {:.1f}", stages.empty() ? "" : ", ", name, seconds * 1e3);
  }
  std::string models = request.model;
  for (const auto& [name, path] : request.methods)
    models += fmt::format("{}{}={}", models.empty() ? "" : " ", name, path);
  tool.print("{} -> {} ({})\n", models,
             !request.output.empty() || request.emit.empty() ? request.output : request.emit.begin()->second,
             request.target);
  tool.print("  delegated  {} of {} nodes in {} delegate{}, {} TOSA operators\n", outcome.delegated,
             outcome.nodes.size() - outcome.conversions, outcome.delegates, outcome.delegates == 1 ? "" : "s",
             outcome.tosa_operators);
  if (!outcome.methods.empty()) tool.print("  methods    {}\n", fmt::join(outcome.methods, ", "));
  tool.print("{}{}", fallbacks(outcome, tool.verbose), conversions_text(outcome, "  outside    "));
  if (outcome.samples) tool.print("  calibrated on {} sample{}\n", outcome.samples, outcome.samples == 1 ? "" : "s");
  tool.print("  size       {} -> {}\n", human_bytes(outcome.model_bytes),
             human_bytes(outcome.program_bytes ? outcome.program_bytes : outcome.payload_bytes));
  for (const NpuEstimate& e : outcome.estimates) print_estimate(tool, e);
  if (outcome.self_check_seconds) tool.print("  self-check passed in {:.1f} ms\n", *outcome.self_check_seconds * 1e3);
  const double peer = outcome.peer_seconds;
  tool.print("  time       {:.1f} ms: {} ms{}\n", total * 1e3, stages,
             peer > 0 ? fmt::format(" (of which {} {:.0f})", outcome.estimates.empty() ? "model-converter" : "Vela",
                                    peer * 1e3)
                      : "");
}

// What --emit takes, and the sentences of those that targets add.
struct Emits {
  std::vector<std::string> kinds{"tosa", "header", "firmware"};
  std::string also;
};
Emits emits() {
  Emits emits;
  for (const TargetInfo& target : targets())
    if (!target.emits.empty() && std::find(emits.kinds.begin(), emits.kinds.end(), target.emits) == emits.kinds.end()) {
      emits.kinds.push_back(target.emits);
      emits.also += ", " + target.emits_sentence;
    }
  return emits;
}

void act(Tool& tool, const CompileRequest& request) {
  const bool prints = request.options.has("print-after") || request.options.has("trace-node");
  const bool writes = !request.output.empty() || !request.emit.empty() || !request.report.empty();
  if (!writes && !prints && !request.options.has("dump-dir"))
    return tool.fail(error("usage.missing", "tosaic compile has no output")
                         .hint("-o FILE.pte writes the program, other endings its parts, as --emit does in addition; "
                               "--print-after STAGE shows a graph"));
  Callbacks callbacks;
  callbacks.message = tool.sink();
  if (tool.shows_progress())
    callbacks.progress = [](std::string_view, std::size_t done, std::size_t total) {
      show_progress("calibrating", done, total);
    };
  const auto artifact = compile(request, callbacks);
  if (!artifact.ok()) return tool.fail(artifact.error());
  if (tool.json) {
    const auto manifest = artifact->manifest();
    if (!manifest.ok()) return tool.fail(manifest.error());
    tool.output += *manifest;
    return;
  }
  tool.print_text(artifact->summary().printed);
  if (!tool.quiet && writes && (!prints || !request.output.empty())) summary(tool, request, artifact->summary());
}

}  // namespace

void describe_compile(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "compile an exported PyTorch program (.pt2) to a .pte");
  auto request = std::make_shared<CompileRequest>();
  auto emit = std::make_shared<std::vector<std::string>>();
  auto models = std::make_shared<std::vector<std::string>>();
  auto samples = std::make_shared<std::vector<std::string>>();
  command
      ->add_option("model", *models,
                   "program that torch.export.save wrote; several as NAME=FILE become methods of one program")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--target,-t", request->target,
                   "what to compile for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->type_name("TARGET")
      ->check(known_target())
      ->capture_default_str();
  command
      ->add_option("--output,-o", request->output,
                   "the file to write, its ending says what: .pte the program, .tosa or .vgf the delegates' graphs, .h "
                   "the program as a C array, .json the report")
      ->type_name("FILE");
  command
      ->add_option(
          "--calibrate", *samples,
          "samples for quantisation: .npz (one array per input, samples stacked), .npy or a folder; of several "
          "methods NAME=FILE for each")
      ->type_name("FILE")
      ->allow_extra_args(false);
  const auto options = add_described(*command, compile_options());
  const Emits emitted = emits();
  command
      ->add_option("--emit", *emit,
                   "also write: tosa=PATH, header=PATH (the .pte as C array), firmware=DIR (C sources for a Cortex-M)" +
                       emitted.also + "; numbered where there are several delegates")
      ->type_name("KIND=PATH")
      ->check(pair_of(emitted.kinds))
      ->allow_extra_args(false);
  command
      ->add_option("--report", request->report,
                   "write a JSON manifest: versions, options, hashes, placement of every node")
      ->type_name("FILE");
  add_described_targets(*command, options);
  command->footer(
      "examples:\n"
      "  tosaic compile digits.pt2 --target tosa-int --calibrate digits_samples.npz -o digits.pte\n"
      "  tosaic compile net.pt2 --target tosa-fp -o net.pte --emit tosa=net.tosa\n"
      "  tosaic compile prefill=prefill.pt2 decode=decode.pt2 --target tosa-fp -o net.pte\n"
      "  tosaic compile net.pt2 --target vgf -o net.pte --emit vgf=net.vgf\n"
      "  tosaic compile net.pt2 --target ethos-u55-128 --calibrate samples.npz -o net.pte\n"
      "  tosaic compile net.pt2 --target ethos-u55-128 -o net.pte --external weights=net_weights.ptd");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      request->emit = pairs(*emit);
      request->options = *options;
      const auto named = name_models(*models, "compile");
      if (!named.ok()) return tool.fail(named.error());
      request->model = named->only;
      request->methods = named->methods;
      if (const Status known = name_samples(*samples, *request); !known.ok()) return tool.fail(known.error());
      act(tool, *request);
    };
  });
}

}  // namespace tosaic::tools
