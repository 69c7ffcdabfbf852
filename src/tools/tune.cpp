// SPDX-License-Identifier: Apache-2.0
// tosaic tune: which calls get 16 bits when not all can afford them.
#include <memory>

#include "base/system/output.h"
#include "tools/described.h"
#include "tools/measured.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

struct TuneCommand {
  MeasuredProgram measured;
  std::string budget, output;
};

Result<Tuning> tuned(const TuneCommand& asked, const Options& options, const Messages& messages) {
  Outputs outputs;
  reads(outputs, asked.measured, options);
  std::optional<Budget> budget;
  if (!asked.budget.empty()) {
    auto read = read_budget(asked.budget);
    if (!read.ok()) return std::move(read.error()).at({"--budget", 0, ""});
    budget = *read;
  }
  if (!asked.output.empty()) TOSAIC_CHECK(outputs.plan(asked.output));  // before the work, not after it
  TOSAIC_TRY(const OpenedProgram given, open(asked.measured, options, messages));
  Callbacks callbacks;
  callbacks.message = messages;
  Result<Tuning> found =
      tune(given.program, asked.measured.target, options, budget, callbacks, given.calibration, given.shown);
  if (!found.ok()) return about_its_file(std::move(found.error()), asked.measured);
  if (asked.output.empty()) return found;
  TOSAIC_CHECK(outputs.write(asked.output, Bytes::copy(found->plan.data(), found->plan.size())));
  TOSAIC_CHECK(outputs.commit());
  return found;
}

}  // namespace

void describe_tune(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "choose which layers of an int8 program get 16 bits, within a budget");
  auto asked = std::make_shared<TuneCommand>();
  add_model_and_target(*command, asked->measured);
  command
      ->add_option(
          "--budget", asked->budget,
          "'snr>=30': so many dB of signal to noise in the worst output, as cheaply as possible; 'top1>=97.5' or "
          "'top1>=float-0.5': so many percent of the labels of --evaluate right, or points below floats; "
          "'cycles<=1.15x': as accurate as possible at that cost, against int8 (Ethos-U: Vela's cycles; other "
          "targets: 'bytes<=1.15x' of activations); without: a table of what there is")
      ->type_name("BUDGET");
  command
      ->add_option("-o,--output", asked->output, "write the plan, for `tosaic compile --plan FILE`; it can be edited")
      ->type_name("FILE");
  add_samples(*command, asked->measured, "measure on", "16 from all over the calibration");
  auto options = add_described(*command, options_of_integers());
  command->footer(
      "examples:\n"
      "  tosaic tune digits.pt2 --calibrate digits_samples.npz --budget 'snr>=35' -o digits.plan\n"
      "  tosaic compile digits.pt2 --calibrate digits_samples.npz --plan digits.plan -o digits.pte\n"
      "  tosaic tune digits.pt2 --calibrate digits_samples.npz --evaluate digits_test.npz --budget 'top1>=float-0.5'\n"
      "  tosaic tune digits.pt2 --target ethos-u85-256 --budget 'cycles<=1.15x' -o digits.plan");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      const auto found = tuned(*asked, *options, tool.sink());
      if (!found.ok()) return tool.fail(found.error());
      tool.output += tool.json ? tuning_json(*found) : tuning_text(*found);
    };
  });
}

}  // namespace tosaic::tools
