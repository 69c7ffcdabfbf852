// SPDX-License-Identifier: Apache-2.0
// tosaic convert: a TOSA graph from one file format into another.
#include <fmt/format.h>
#include <algorithm>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {

void add_vgf_options(CLI::App& command, std::string& converter, std::vector<std::string>& flags) {
  command
      .add_option("--vgf-converter", converter,
                  "tosaic: our own; sdk: Arm's model-converter, for comparison; or the path of one")
      ->default_str("tosaic");
  command
      .add_option("--vgf-flags", flags,
                  "flags of the model converter; our own has --disable-replicated-composites, "
                  "--enable-bespoke and --custom-op-domain-to-opcode=DOMAIN:NUMBER")
      ->take_all();
}

void add_convert(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("convert", "write the graph of a .tosa or .vgf file as the other of the two");
  auto request = std::make_shared<ConvertRequest>();
  command->add_option("input", request->input, ".tosa, .vgf, or graph text")->required();
  command->add_option("--output,-o", request->output, ".vgf or .tosa to write")->required();
  add_vgf_options(*command, request->vgf_converter, request->vgf_flags);
  command->add_option("--repeat", request->repeat, "convert so often, for timing")->check(CLI::PositiveNumber);
  add_json(*command, tool);
  command->footer(
      "examples:\n"
      "  tosaic convert net.tosa -o net.vgf\n"
      "  tosaic convert net.tosa -o arm.vgf --vgf-converter sdk");
  command->callback([=, &tool] {
    const ConvertOutcome outcome = convert(*request);
    if (outcome.error) return tool.fail(*outcome.error);
    const double least = *std::min_element(outcome.seconds.begin(), outcome.seconds.end());
    if (tool.json)
      fmt::print(
          "{{\"output\": {}, \"bytes\": {}, \"operators\": {}, \"first_seconds\": {:.6f}, "
          "\"least_seconds\": {:.6f}, \"peer_seconds\": {:.6f}}}\n",
          json_text(request->output), outcome.bytes, outcome.operators, outcome.seconds[0], least,
          outcome.peer_seconds);
    else
      fmt::print("{} -> {}: {} operators, {}, {:.1f} ms\n", request->input, request->output, outcome.operators,
                 human_bytes(outcome.bytes), least * 1e3);
  });
}

}  // namespace tosaic::tools
