// SPDX-License-Identifier: Apache-2.0
// tosaic convert: a TOSA graph from one file format into another.
#include <fmt/format.h>
#include <algorithm>
#include <memory>

#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {

void add_vgf_options(CLI::App& command, std::string& converter, std::vector<std::string>& flags) {
  command
      .add_option("--vgf-converter", converter,
                  "tosaic: our own; sdk: Arm's model-converter, for comparison; or the path of one")
      ->type_name("FILE")
      ->default_str("tosaic");
  command
      .add_option("--vgf-flags", flags,
                  "flags of the model converter; our own has --disable-replicated-composites, "
                  "--enable-bespoke and --custom-op-domain-to-opcode=DOMAIN:NUMBER")
      ->type_name("FLAG")
      ->take_all()
      ->allow_extra_args(false);
}

void add_convert(CLI::App& app, Tool& tool) {
  auto* command = add_command(app, tool, "convert", "write the graph of a .tosa or .vgf file as the other of the two");
  auto request = std::make_shared<ConvertRequest>();
  command->add_option("input", request->input, ".tosa, .vgf, or graph text")->type_name("FILE")->required();
  command->add_option("--output,-o", request->output, ".vgf or .tosa to write")->type_name("FILE")->required();
  add_vgf_options(*command, request->vgf_converter, request->vgf_flags);
  command->add_option("--repeat", request->repeat, "convert so often, for timing")
      ->type_name("N")
      ->check(whole_number(1, most_runs));
  command->footer(
      "examples:\n"
      "  tosaic convert net.tosa -o net.vgf\n"
      "  tosaic convert net.tosa -o arm.vgf --vgf-converter sdk");
  const auto act = [=, &tool] {
    const ConvertOutcome outcome = convert(*request);
    if (outcome.error) return tool.fail(*outcome.error);
    const double least = *std::min_element(outcome.seconds.begin(), outcome.seconds.end());
    if (tool.json)
      tool.print_json("convert",
                      fmt::format("\"output\": {}, \"bytes\": {}, \"operators\": {}, \"first_seconds\": {:.6f}, "
                                  "\"least_seconds\": {:.6f}, \"peer_seconds\": {:.6f}",
                                  json_text(request->output), outcome.bytes, outcome.operators, outcome.seconds[0],
                                  least, outcome.peer_seconds));
    else if (!tool.quiet)
      tool.print("{} -> {}: {} operators, {}, {:.1f} ms\n", request->input, request->output, outcome.operators,
                 human_bytes(outcome.bytes), least * 1e3);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
