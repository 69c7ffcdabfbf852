// SPDX-License-Identifier: Apache-2.0
#include "tools/measured.h"

#include "tools/values.h"

namespace tosaic::tools {

void add_model_and_target(CLI::App& command, MeasuredProgram& to) {
  command.add_option("model", to.model, "program that torch.export.save wrote, in floats")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--target,-t", to.target,
                  "what it would be compiled for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->type_name("TARGET")
      ->check(known_target())
      ->capture_default_str();
}

void add_samples(CLI::App& command, MeasuredProgram& to, const std::string& does, const std::string& without) {
  command
      .add_option("--calibrate", to.calibrate,
                  "samples for quantisation, as `compile` takes them; without: those stored in the model")
      ->type_name("FILE");
  command.add_option("--samples", to.samples, "other samples to " + does + ", in the same form; without: " + without)
      ->type_name("FILE");
  command
      .add_option(
          "--evaluate", to.evaluate,
          "the same with labels: a .npz that has an array of integers 'labels', too. Each says which element along "
          "the last axis of the first output should be the largest")
      ->type_name("FILE")
      ->excludes("--samples");
}

void reads(Outputs& outputs, const MeasuredProgram& asked, const Options& options) {
  for (const std::string& path : {asked.model, asked.calibrate, asked.samples, asked.evaluate, options.text("plan")})
    if (!path.empty()) outputs.reads(path);
}

Result<OpenedProgram> open(const MeasuredProgram& asked, const Options& options, const Messages& messages) {
  TOSAIC_TRY(Program program, Program::open(asked.model, messages));
  TOSAIC_TRY(program, program.with_input_layout(options.list("input-layout")));
  OpenedProgram opened{program, {}, {}};
  if (!asked.calibrate.empty()) { TOSAIC_TRY(opened.calibration, read_samples(asked.calibrate, opened.program)); }
  if (!asked.evaluate.empty()) { TOSAIC_TRY(opened.shown, read_evaluation(asked.evaluate, opened.program)); }
  if (!asked.samples.empty()) { TOSAIC_TRY(opened.shown, read_samples(asked.samples, opened.program)); }
  return opened;
}

Diagnostic about_its_file(Diagnostic why, const MeasuredProgram& asked) {
  const bool of_samples = why.code.starts_with("calibrate.") && why.place.line == 0;
  if (of_samples && !asked.calibrate.empty()) why.place.file = asked.calibrate;
  return why;
}

}  // namespace tosaic::tools
