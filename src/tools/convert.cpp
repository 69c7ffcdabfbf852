// SPDX-License-Identifier: Apache-2.0
// tosaic convert: a TOSA graph from one file format into another.
#include <fmt/format.h>
#include <algorithm>
#include <memory>

#include "tools/described.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {

void describe_convert(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "write the graph of a .tosa or .vgf file as the other of the two");
  auto request = std::make_shared<ConvertRequest>();
  command->add_option("input", request->input, ".tosa, .vgf, or graph text")->type_name("FILE")->required();
  command->add_option("--output,-o", request->output, ".vgf or .tosa to write")->type_name("FILE")->required();
  auto options = std::make_shared<Options>();
  add_described_family(*command, options, "VGF");
  command->add_option("--repeat", request->repeat, "convert so often, for timing")
      ->type_name("N")
      ->check(whole_number(1, most_runs));
  command->footer(
      "examples:\n"
      "  tosaic convert net.tosa -o net.vgf\n"
      "  tosaic convert net.tosa -o arm.vgf --vgf-converter sdk");
  const auto act = [=, &tool] {
    request->options = *options;
    const auto made = convert(*request, tool.sink());
    if (!made.ok()) return tool.fail(made.error());
    const double least = *std::min_element(made->seconds.begin(), made->seconds.end());
    if (tool.json)
      tool.print_json("convert",
                      fmt::format("\"output\": {}, \"bytes\": {}, \"operators\": {}, \"first_seconds\": {:.6f}, "
                                  "\"least_seconds\": {:.6f}, \"peer_seconds\": {:.6f}",
                                  json_text(request->output), made->bytes, made->operators, made->seconds[0], least,
                                  made->peer_seconds));
    else if (!tool.quiet)
      tool.print("{} -> {}: {} operators, {}, {:.1f} ms\n", request->input, request->output, made->operators,
                 human_bytes(made->bytes), least * 1e3);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
