// SPDX-License-Identifier: Apache-2.0
// tosaic device build, device run: a .pte as the firmware of a board, and that firmware in QEMU.
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "base/diagnostic.h"
#include "base/printable.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + json_text(text);
  return "[" + list + "]";
}

void build(Tool& tool, const FirmwareRequest& request) {
  const auto made = build_firmware(request);
  if (!made.ok()) return tool.fail(made.error());
  if (tool.json)
    return tool.print_json("device build", fmt::format("\"file\": {}, \"board\": {}, \"npu\": {}, \"arena_bytes\": {}",
                                                       json_text(request.output), json_text(request.board),
                                                       json_text(made->npu), made->arena_bytes));
  if (tool.quiet) return;
  tool.print("{} for {}, NPU {}{}\n{}", request.output, request.board, made->npu.empty() ? "none" : made->npu,
             request.registers ? "" : " (simulated)", made->memory);
}

void run_it(Tool& tool, const FirmwareRunRequest& request) {
  const auto ran = run_firmware(request);
  if (!ran.ok()) return tool.fail(ran.error());
  std::size_t failed = 0;
  for (const CaseOutcome& one : ran->cases) failed += one.passed ? 0 : 1;
  if (tool.json) {
    tool.print_json("device run",
                    fmt::format("\"outputs\": {}, \"files\": {}, \"cases\": {}, \"failed\": {}, \"said\": {}",
                                json_list(ran->output_types), json_list(ran->written), ran->cases.size(), failed,
                                json_text(ran->said)));
  } else if (!tool.quiet) {
    for (std::size_t i = 0; i < ran->output_types.size(); ++i)
      tool.print("  output {}   {}{}\n", i, ran->output_types[i],
                 i < ran->written.size() ? " -> " + ran->written[i] : "");
    for (const CaseOutcome& one : ran->cases)
      tool.print("  case {}     {}\n", one.number, one.passed ? "passed" : printable(one.why));
    tool.print("{}", printable(ran->said, true));
  }
  if (failed > 0)
    tool.fail((error("run.case-failed", fmt::format("{} of {} cases give other results than {} expects", failed,
                                                    ran->cases.size(), request.cases))));
}

}  // namespace

void describe_device(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "build the firmware of a board around a .pte (build), or run one in QEMU (run)");
  auto action = std::make_shared<std::string>(), file = std::make_shared<std::string>();
  auto building = std::make_shared<FirmwareRequest>();
  auto running = std::make_shared<FirmwareRunRequest>();
  command->add_option("action", *action, "build or run")->check(one_of({"build", "run"}))->required();
  command
      ->add_option("file", *file,
                   "build: a .pte or .bpte for Ethos-U, or none: then `run` gives it; run: the firmware, an ELF file")
      ->type_name("FILE");
  command->add_option("--board", building->board, "build: mps3-an547, or a folder of device/boards")->type_name("NAME");
  command->add_option("--output,-o", building->output, "build: the firmware")->type_name("FILE");
  command->add_option("--npu", building->npu, "build: the board's NPU, e.g. ethos-u55-128; otherwise the program's")
      ->type_name("PRODUCT");
  command->add_option("--arena", building->arena_bytes, "build: bytes for the program; otherwise what it needs")
      ->type_name("BYTES");
  command->add_flag("--real-npu", building->registers, "build: drive an NPU that is there, instead of a simulator");
  command->add_option("--map", building->map, "build: also write the linker's map: what lies where, and whose it is")
      ->type_name("FILE");
  command->add_option("--libraries", building->libraries, "build: folder of the libraries that `make device` built")
      ->type_name("DIR");
  command->add_option("--program", running->program, "run: a .pte or .bpte, for a firmware that was built without one")
      ->type_name("FILE");
  command->add_option("--input", running->inputs, "run: a .npy file, once for each input, in order")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--output-dir", running->output_dir, "run: folder for output_N.npy")->type_name("DIR");
  command->add_option("--cases", running->cases, "run: a .bpte whose cases are run, and compared with what it expects")
      ->type_name("FILE");
  command
      ->add_option("--plugin", running->plugin,
                   "run: for QEMU, such as an NPU: tosaic_npu.so,target=ethos-u55-128 (`make qemu-npu`)")
      ->type_name("FILE[,OPTION=VALUE]");
  command->footer(
      "examples:\n  tosaic device build net.pte --board mps3-an547 -o net.elf\n"
      "  tosaic device run net.elf --input x.npy --output-dir out/");
  const auto act = [=, &tool] {
    if (*action == "run") {
      if (file->empty())
        return tool.fail(error("usage.missing", "tosaic device run needs the firmware, an ELF file")
                             .hint("`tosaic device build` makes one of a .pte"));
      running->firmware = *file;
      return run_it(tool, *running);
    }
    for (const auto& [name, value] : {std::pair("--board", building->board), std::pair("--output", building->output)})
      if (value.empty())
        return tool.fail(error("usage.missing", fmt::format("tosaic device build needs the option {}", name))
                             .hint("`tosaic device --help` shows the options and examples"));
    building->program = *file;
    build(tool, *building);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
