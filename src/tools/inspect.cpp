// SPDX-License-Identifier: Apache-2.0
// tosaic inspect: what is in a file.
#include <fmt/format.h>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {

void describe_inspect(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "show what is in a .pt2, .tosa, .vgf, .pte, .bpte, .ptd, .npy or .npz file");
  auto file = std::make_shared<std::string>();
  auto options = std::make_shared<InspectOptions>();
  command->add_option("file", *file, "the file to look into")->type_name("FILE")->required();
  command->add_flag("--disassemble", options->disassemble,
                    "Ethos-U: list the NPU's operations with their tensors, addresses and formats");
  command->add_flag("--registers", options->registers, "Ethos-U: list every command as well");
  command->add_option("--data", options->data, "a .ptd file with what the .pte keeps outside itself")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->footer(
      "examples:\n"
      "  tosaic inspect digits.pte\n"
      "  tosaic inspect digits_u55.pte --disassemble\n"
      "  tosaic inspect vela/network_vela.npz --disassemble   (kept by compile --emit vela=DIR)");
  const auto act = [=, &tool] {
    const auto found = inspect(*file, *options);
    if (!found.ok()) return tool.fail(found.error());
    tool.json ? tool.print_json("inspect", found->json.substr(1, found->json.size() - 2))
              : tool.print_text(found->text);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
