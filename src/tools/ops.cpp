// SPDX-License-Identifier: Apache-2.0
// tosaic ops: the PyTorch operators that tosaic lowers, printed from the operator table.
#include <fmt/format.h>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {

namespace {

std::string json_members(const std::vector<OperatorInfo>& all) {
  std::string rows;
  for (const OperatorInfo& op : all) {
    std::string schemas;
    for (const std::string& schema : op.schemas) schemas += (schemas.empty() ? "" : ", ") + json_text(schema);
    rows +=
        fmt::format("{}\n  {{\"name\": {}, \"rule\": {}, \"summary\": {}, \"schemas\": [{}]}}", rows.empty() ? "" : ",",
                    json_text(op.name), json_text(op.rule), json_text(op.summary), schemas);
  }
  return "\"operators\": [" + rows + "\n]";
}

}  // namespace

void describe_ops(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "list the PyTorch operators that tosaic lowers");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print docs/operators.md: each overload, and which targets take it");
  command->footer("example:\n  tosaic ops");
  const auto act = [&tool, markdown] {
    if (*markdown) {
      auto page = operator_page();
      if (!page.ok()) return tool.fail(page.error());
      tool.output += *page;
      return;
    }
    const auto all = operators();
    if (tool.json) return tool.print_json("ops", json_members(all));
    std::size_t overloads = 0;
    for (const auto& op : all) {
      overloads += op.schemas.size();
      tool.print("{:<28} {:<12} {}\n", op.name, op.rule, op.summary);
    }
    tool.print("{} operators, {} overloads\n", all.size(), overloads);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
