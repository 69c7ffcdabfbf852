// SPDX-License-Identifier: Apache-2.0
// tosaic ops: the PyTorch operators that tosaic lowers, printed from the operator table (docs/operators.md is this).
#include <fmt/format.h>

#include "tools/tool.h"

namespace tosaic::tools {

void add_ops(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("ops", "list the PyTorch operators that tosaic lowers");
  add_json(*command, tool);
  command->footer("example:\n  tosaic ops");
  command->callback([&tool] {
    const auto all = operators();
    if (tool.json) {
      fmt::print("[");
      for (std::size_t i = 0; i < all.size(); ++i) {
        fmt::print("{}\n  {{\"name\": {}, \"rule\": {}, \"summary\": {}, \"schemas\": [", i ? "," : "",
                   json_text(all[i].name), json_text(all[i].rule), json_text(all[i].summary));
        for (std::size_t k = 0; k < all[i].schemas.size(); ++k)
          fmt::print("{}{}", k ? ", " : "", json_text(all[i].schemas[k]));
        fmt::print("]}}");
      }
      fmt::print("\n]\n");
      return;
    }
    std::size_t overloads = 0;
    for (const auto& op : all) {
      overloads += op.schemas.size();
      fmt::print("{:<28} {:<12} {}\n", op.name, op.rule, op.summary);
    }
    fmt::print("{} operators, {} overloads\n", all.size(), overloads);
  });
}

}  // namespace tosaic::tools
