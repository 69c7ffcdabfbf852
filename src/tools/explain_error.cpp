// SPDX-License-Identifier: Apache-2.0
// tosaic explain-error: what an error code means, and what to do.
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {

void describe_explain_error(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "explain an error code: what happened, and what to do");
  auto code = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  command->add_option(
      "code", *code,
      "a code such as quantise.overflow, or a family of codes such as quantise; without it: the list of families");
  command->add_flag("--markdown", *markdown, "print docs/errors.md: all families, with their codes");
  command->footer("examples:\n  tosaic explain-error quantise.overflow\n  tosaic explain-error quantise");
  const auto act = [&tool, code, markdown] {
    auto text = *markdown ? Result<std::string>(error_page()) : explain_error(*code);
    if (!text.ok()) return tool.fail(text.error());
    if (!tool.json) return tool.print_text(*text);
    tool.print_json("explain-error", "\"code\": " + json_text(*code) + ", \"text\": " + json_text(*text));
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
