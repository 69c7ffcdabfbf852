// SPDX-License-Identifier: Apache-2.0
// tosaic extract: every delegate's artifact out of a .pte.
#include <fmt/format.h>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {
namespace {

void print_json(const std::vector<Extracted>& files) {
  fmt::print("[");
  for (std::size_t i = 0; i < files.size(); ++i)
    fmt::print("{}\n  {{\"file\": {}, \"method\": {}, \"delegate\": {}, \"id\": {}, \"format\": {}, \"bytes\": {}}}",
               i ? "," : "", json_text(files[i].file), json_text(files[i].method), files[i].delegate,
               json_text(files[i].id), json_text(files[i].format), files[i].bytes);
  fmt::print("\n]\n");
}

}  // namespace

void add_extract(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("extract", "write what the delegates of a .pte run: VGF, TOSA, Ethos-U streams");
  auto request = std::make_shared<ExtractRequest>();
  command->add_option("program", request->program, ".pte of tosaic or of ExecuTorch")->required();
  command
      ->add_option("--output-dir,-o", request->output_dir,
                   "folder for METHOD_delegateN.vgf, .tosa, .vela (an Ethos-U payload) or .bin (anything else)")
      ->required();
  command->add_option("--data", request->data, "a .ptd file with what the .pte keeps outside itself")
      ->allow_extra_args(false);
  command->add_flag("--force", request->replace, "replace files that hold something else");
  add_json(*command, tool);
  command->footer("example:\n  tosaic extract net.pte -o parts/");
  command->callback([=, &tool] {
    const ExtractOutcome outcome = extract(*request);
    if (outcome.error) return tool.fail(*outcome.error);
    if (tool.json) return print_json(outcome.files);
    for (const Extracted& f : outcome.files) fmt::print("{}  {}, {}\n", f.file, f.id, human_bytes(f.bytes));
  });
}

}  // namespace tosaic::tools
