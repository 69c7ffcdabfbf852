// SPDX-License-Identifier: Apache-2.0
// tosaic inspect: what is in a file.
#include <fmt/format.h>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {

void add_inspect(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("inspect", "show what is in a .pt2, .tosa, .pte, .npy or .npz file");
  auto file = std::make_shared<std::string>();
  command->add_option("file", *file)->required();
  add_json(*command, tool);
  command->footer("example:\n  tosaic inspect digits.pte");
  command->callback([=, &tool] {
    InspectOutcome outcome = inspect(*file);
    if (outcome.error) return tool.fail(*outcome.error);
    fmt::print("{}", tool.json ? outcome.json + "\n" : outcome.text);
  });
}

}  // namespace tosaic::tools
