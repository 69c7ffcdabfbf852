// SPDX-License-Identifier: Apache-2.0
// tosaic compile: a .pt2 in, a .pte out, a short summary.
#include <fmt/format.h>
#include <unistd.h>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "tools/tool.h"

namespace tosaic::tools {
namespace {

// The nodes that stay behind, grouped by operator and reason.
std::string fallbacks(const CompileOutcome& outcome) {
  std::map<std::pair<std::string, std::string>, std::vector<const NodePlacement*>> groups;
  for (const auto& n : outcome.nodes)
    if (n.delegate < 0 && !n.conversion) groups[{n.op, n.reason}].push_back(&n);
  std::string text;
  for (const auto& [key, nodes] : groups) {
    text += fmt::format("  outside    {} x {}: {}", nodes.size(), key.first, key.second);
    if (!nodes[0]->place.empty()) text += fmt::format(" ({})", nodes[0]->place);
    text += "\n";
  }
  return text;
}

void print_estimate(const NpuEstimate& e) {
  fmt::print("  estimate   {:.3f} M cycles, {:.1f} inferences/s, {} NPU and {} CPU operators (Vela's figures)\n",
             e.cycles / 1e6, e.inferences_per_second, e.npu_operators, e.cpu_operators);
  fmt::print("  memory     SRAM {}, flash {}", human_bytes(static_cast<std::size_t>(e.sram_bytes)),
             human_bytes(static_cast<std::size_t>(e.flash_bytes)));
  if (e.dram_bytes > 0) fmt::print(", DRAM {}", human_bytes(static_cast<std::size_t>(e.dram_bytes)));
  fmt::print("; SRAM traffic {} per inference\n", human_bytes(static_cast<std::size_t>(e.sram_traffic_bytes)));
}

void summary(const CompileRequest& request, const CompileOutcome& outcome) {
  double total = 0;
  std::string stages;
  for (const auto& [name, seconds] : outcome.stage_seconds) {
    total += seconds;
    stages += fmt::format("{}{} {:.1f}", stages.empty() ? "" : ", ", name, seconds * 1e3);
  }
  fmt::print("{} -> {} ({})\n", request.model,
             !request.output.empty() || request.emit.empty() ? request.output : request.emit.begin()->second,
             request.target);
  fmt::print("  delegated  {} of {} nodes in {} delegate{}, {} TOSA operators\n", outcome.delegated,
             outcome.nodes.size() - outcome.conversions, outcome.delegates, outcome.delegates == 1 ? "" : "s",
             outcome.tosa_operators);
  fmt::print("{}{}", fallbacks(outcome), conversions_text(outcome, "  outside    "));
  if (outcome.samples) fmt::print("  calibrated on {} sample{}\n", outcome.samples, outcome.samples == 1 ? "" : "s");
  fmt::print("  size       {} -> {}\n", human_bytes(outcome.model_bytes),
             human_bytes(outcome.output_bytes ? outcome.output_bytes : outcome.payload_bytes));
  for (const NpuEstimate& e : outcome.estimates) print_estimate(e);
  const double peer = outcome.peer_seconds;
  fmt::print("  time       {:.1f} ms: {} ms{}\n", total * 1e3, stages,
             peer > 0 ? fmt::format(" (of which {} {:.0f})", outcome.estimates.empty() ? "model-converter" : "Vela",
                                    peer * 1e3)
                      : "");
}

// KIND=PATH, as often as the option is given.
std::map<std::string, std::string> pairs(const std::string& option, const std::vector<std::string>& given,
                                         const std::set<std::string>& kinds) {
  std::string known;
  for (const auto& kind : kinds) known += (known.empty() ? "" : ", ") + kind + "=PATH";
  std::map<std::string, std::string> found;
  for (const std::string& pair : given) {
    const auto equals = pair.find('=');
    const std::string kind = pair.substr(0, equals), path = equals == std::string::npos ? "" : pair.substr(equals + 1);
    if (!kinds.contains(kind) || path.empty()) throw CLI::ValidationError(option, "takes " + known);
    found[kind] = path;
  }
  return found;
}

}  // namespace

void add_compile(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("compile", "compile an exported PyTorch program (.pt2) to a .pte");
  auto request = std::make_shared<CompileRequest>();
  auto quantise = std::make_shared<std::string>("auto");
  auto io = std::make_shared<std::string>("float");
  auto observer = std::make_shared<std::string>("histogram");
  auto weights = std::make_shared<std::string>("per-channel");
  auto emit = std::make_shared<std::vector<std::string>>();
  auto external = std::make_shared<std::vector<std::string>>();
  command->add_option("model", request->model, "program that torch.export.save wrote")->required();
  command
      ->add_option("--target,-t", request->target,
                   "what to compile for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->capture_default_str();
  command->add_option("--output,-o", request->output, ".pte to write");
  command->add_option("--calibrate", request->calibrate,
                      "samples for quantisation: .npz (one array per input, samples stacked), .npy or a folder");
  command->add_option("--quantize,--quantise", *quantise, "auto: int8 when the target is integer only")
      ->check(CLI::IsMember({"auto", "int8", "int16x8"}))
      ->capture_default_str();
  command->add_option("--io", *io, "inputs and outputs of an integer program")
      ->check(CLI::IsMember({"float", "quantized"}))
      ->capture_default_str();
  command->add_option("--observer", *observer, "how ranges are chosen")
      ->check(CLI::IsMember({"histogram", "minmax"}))
      ->capture_default_str();
  command->add_option("--weights", *weights, "scales of weights")
      ->check(CLI::IsMember({"per-channel", "per-tensor"}))
      ->capture_default_str();
  command->add_option("--tosa-spec", request->tosa_spec, "replaces the target's specification, e.g. TOSA-1.0+INT");
  command->add_flag("--require-full-delegation", request->require_full_delegation,
                    "fail when any node stays outside the delegate");
  command->add_option("--emit", *emit,
                      "also write: tosa=PATH, vgf=PATH (target vgf; both numbered where there are several delegates), "
                      "vela=DIR (Vela's files), header=PATH (the .pte as C array)");
  add_vgf_options(*command->add_option_group("VGF"), request->vgf_converter, request->vgf_flags);
  auto* ethos = command->add_option_group("Ethos-U");
  ethos->add_option("--vela", request->vela, "the vela executable, when it is not on PATH");
  ethos->add_option("--vela-config", request->vela_config, ".ini of your own, with the sections named below");
  ethos->add_option("--system-config", request->system_config, "System_Config section; default: the product's");
  ethos->add_option("--memory-mode", request->memory_mode, "Memory_Mode section; default: the product's");
  ethos->add_option("--vela-flags", request->vela_flags, "further options for vela, e.g. --vela-flags=--optimise=Size")
      ->take_all();
  ethos
      ->add_option("--external", *external,
                   "keep in a data file instead of the .pte: weights=FILE.ptd, commands=FILE.ptd")
      ->allow_extra_args(false);
  command->add_option("--print-after", request->print_after, "print the graph after a stage")
      ->check(CLI::IsMember({"read", "normalise", "quantise", "partition", "lower", "tidy"}));
  command->add_option("--report", request->report,
                      "write a JSON manifest: versions, options, hashes, placement of every node");
  command->add_option("--threads", request->threads,
                      "threads for calibration, 0: all cores (results do not depend on it)");
  add_json(*command, tool);
  command->footer(
      "examples:\n"
      "  tosaic compile digits.pt2 --target tosa-int --calibrate digits_samples.npz -o digits.pte\n"
      "  tosaic compile net.pt2 --target tosa-fp -o net.pte --emit tosa=net.tosa\n"
      "  tosaic compile net.pt2 --target vgf -o net.pte --emit vgf=net.vgf\n"
      "  tosaic compile net.pt2 --target ethos-u55-128 --calibrate samples.npz -o net.pte\n"
      "  tosaic compile net.pt2 --target ethos-u55-128 -o net.pte --external weights=net_weights.ptd");
  command->callback([=, &tool] {
    request->quantise = *quantise == "int8"      ? Quantise::int8
                        : *quantise == "int16x8" ? Quantise::int16x8
                                                 : Quantise::automatic;
    request->quantised_io = *io == "quantized";
    request->minmax_observer = *observer == "minmax";
    request->per_tensor_weights = *weights == "per-tensor";
    request->emit = pairs("--emit", *emit, {"tosa", "vgf", "vela", "header"});
    const auto outside = pairs("--external", *external, {"weights", "commands"});
    if (outside.contains("weights")) request->external_weights = outside.at("weights");
    if (outside.contains("commands")) request->external_commands = outside.at("commands");
    if (request->output.empty() && !request->emit.contains("tosa") && !request->emit.contains("vgf") &&
        request->print_after.empty())
      throw CLI::RequiredError("--output");
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    if (terminal && !tool.json)
      request->progress = [](std::size_t done, std::size_t total) {
        if (total < 8) return;
        fmt::print(stderr, "\rcalibrating {:3}% [{:<30}]", done * 100 / total, std::string(done * 30 / total, '#'));
        if (done == total) fmt::print(stderr, "\r{:50}\r", "");
      };
    CompileOutcome outcome = compile(*request, tool.sink());
    if (outcome.error) return tool.fail(*outcome.error);
    fmt::print("{}", outcome.printed);
    if (tool.json)
      fmt::print("{}", outcome.manifest);
    else if (request->print_after.empty() || !request->output.empty())
      summary(*request, outcome);
  });
}

}  // namespace tosaic::tools
