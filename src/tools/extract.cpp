// SPDX-License-Identifier: Apache-2.0
// tosaic extract: every delegate's artifact out of a .pte or .bpte.
#include <fmt/format.h>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {
namespace {

std::string json_members(const std::vector<Extracted>& files) {
  std::string rows;
  for (const Extracted& f : files)
    rows += fmt::format(
        "{}\n  {{\"file\": {}, \"method\": {}, \"delegate\": {}, \"id\": {}, \"format\": {}, \"bytes\": {}}}",
        rows.empty() ? "" : ",", json_text(f.file), json_text(f.method), f.delegate, json_text(f.id),
        json_text(f.format), f.bytes);
  return "\"files\": [" + rows + "\n]";
}

}  // namespace

void describe_extract(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "write what the delegates of a .pte or .bpte run: VGF, TOSA, Ethos-U streams");
  auto request = std::make_shared<ExtractRequest>();
  command->add_option("program", request->program, ".pte of tosaic or of ExecuTorch")->type_name("FILE")->required();
  command
      ->add_option("--output-dir,-o", request->output_dir,
                   "folder for METHOD_delegateN.vgf, .tosa, .vela (an Ethos-U payload) or .bin (anything else)")
      ->type_name("DIR")
      ->required();
  command->add_option("--data", request->data, "a .ptd file with what the .pte keeps outside itself")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_flag("--force", request->replace, "replace files that hold something else");
  command->footer("example:\n  tosaic extract net.pte -o parts/");
  const auto act = [=, &tool] {
    const auto files = extract(*request);
    if (!files.ok()) return tool.fail(files.error());
    if (tool.json) return tool.print_json("extract", json_members(*files));
    if (tool.quiet) return;
    for (const Extracted& f : *files) tool.print("{}  {}, {}\n", f.file, f.id, human_bytes(f.bytes));
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
