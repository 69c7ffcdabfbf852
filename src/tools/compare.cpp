// SPDX-License-Identifier: Apache-2.0
// tosaic compare: where a program loses accuracy when it becomes integers, or narrower floats.
#include <memory>

#include "base/diagnostic.h"
#include "base/system/output.h"
#include "tools/described.h"
#include "tools/measured.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

struct CompareCommand {
  MeasuredProgram measured;
  std::string report;
  std::size_t limit = 20;
  bool on_device = false;
};

Result<Comparison> compared(const CompareCommand& asked, const Options& options, const Messages& messages) {
  Outputs outputs;
  reads(outputs, asked.measured, options);
  if (!asked.report.empty()) TOSAIC_CHECK(outputs.plan(asked.report));  // before the work, not after it
  TOSAIC_TRY(OpenedProgram given, open(asked.measured, options, messages));
  given.shown.on_device = asked.on_device;
  Callbacks callbacks;
  callbacks.message = messages;
  Result<Comparison> found =
      compare(given.program, asked.measured.target, options, callbacks, given.calibration, given.shown);
  if (!found.ok()) return about_its_file(std::move(found.error()), asked.measured);
  if (asked.report.empty()) return found;
  const std::string json = comparison_json(*found);
  TOSAIC_CHECK(outputs.write(asked.report, Bytes::copy(json.data(), json.size())));
  TOSAIC_CHECK(outputs.commit());
  return found;
}

}  // namespace

void describe_compare(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "show which layers lose accuracy in integers or 16-bit floats, and what helps");
  auto asked = std::make_shared<CompareCommand>();
  add_model_and_target(*command, asked->measured);
  add_samples(*command, asked->measured, "compare on", "the first 8 of the calibration");
  command->add_option("--limit", asked->limit, "layers to show, the worst first, 0: all (JSON has all of them always)")
      ->type_name("N")
      ->check(whole_number(0, most_runs))
      ->capture_default_str();
  command->add_flag("--on-device", asked->on_device,
                    "of a program that stays floats: run it on this machine's device as well, and compare its outputs");
  command->add_option("--report", asked->report, "write the comparison to a file, as --json prints it")
      ->type_name("FILE");
  auto options = add_described(*command, options_of_integers());
  add_described_family(*command, options, "Vulkan");
  command->footer(
      "examples:\n"
      "  tosaic compare digits.pt2 --calibrate digits_samples.npz\n"
      "  tosaic compare digits.pt2 --calibrate train.npz --samples test.npz --override 'head: int16x8'\n"
      "  tosaic compare digits.pt2 --target ethos-u55-128 --limit 5 --report digits.json");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      const auto found = compared(*asked, *options, tool.sink());
      if (!found.ok()) return tool.fail(found.error());
      tool.output += tool.json ? comparison_json(*found) : comparison_text(*found, asked->limit);
    };
  });
}

}  // namespace tosaic::tools
