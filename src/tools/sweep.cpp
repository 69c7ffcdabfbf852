// SPDX-License-Identifier: Apache-2.0
// tosaic sweep: one model for many targets, memory modes and precisions.
#include <fmt/format.h>
#include <filesystem>
#include <memory>

#include "base/diagnostic.h"
#include "base/system/output.h"
#include "tools/described.h"
#include "tools/progress.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

struct SweepCommand {
  SweepQuestion question;
  std::string model, calibrate, evaluate, labels, output;
  std::size_t limit = 100;
  std::int64_t clock = 0;
  SweepHow how;
};

Result<SweepData> read_data(const SweepCommand& asked, const Program& program, const Messages& messages) {
  SampleSource calibration;
  if (!asked.calibrate.empty()) { TOSAIC_TRY(calibration, read_samples(asked.calibrate, program)); }
  LabelledData evaluation;
  if (!asked.evaluate.empty()) {
    TOSAIC_TRY(evaluation, open_data_set(asked.evaluate, asked.labels, tensor_inputs(program), messages));
  }
  return sweep_data(program, calibration, evaluation, asked.limit);
}

using Form = std::string (*)(const std::string& model, const std::vector<SweepRow>& rows);

Result<Form> form_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".html") return Form(&sweep_html);
  if (ending == ".json") return Form(&sweep_json);
  if (ending == ".csv")
    return Form([](const std::string&, const std::vector<SweepRow>& rows) { return sweep_csv(rows); });
  return error("usage.ending", fmt::format("what is to be written to '{}'?", path))
      .hint("end the name with .html, .csv or .json");
}

struct Swept {
  std::string model;
  std::vector<SweepRow> rows;
};
Result<Swept> swept(const SweepCommand& asked, const Options& options, const Messages& messages) {
  Outputs outputs;
  for (const std::string& path : {asked.model, asked.calibrate, asked.evaluate, asked.labels})
    if (!path.empty()) outputs.reads(path);
  Form form = nullptr;
  if (!asked.output.empty()) {
    TOSAIC_TRY(form, form_of(asked.output));
    TOSAIC_CHECK(outputs.plan(asked.output));  // before the work, not after it
  }
  SweepQuestion question = asked.question;
  question.options = options;
  TOSAIC_TRY(const std::vector<SweepPoint> points, sweep_points(question));
  TOSAIC_TRY(Program program, Program::open(asked.model, messages));
  TOSAIC_TRY(program, program.with_input_layout(options.list("input-layout")));
  TOSAIC_TRY(const SweepData data, read_data(asked, program, messages));
  Swept found{std::filesystem::path(asked.model).filename().string(), {}};
  TOSAIC_TRY(found.rows, sweep(program, points, data, asked.how));
  if (asked.clock > 0) {
    set_clock(found.rows, static_cast<double>(asked.clock) * 1e6);
    mark_best(found.rows);
  }
  if (asked.output.empty()) return found;
  const std::string text = form(found.model, found.rows);
  TOSAIC_CHECK(outputs.write(asked.output, Bytes::copy(text.data(), text.size())));
  TOSAIC_CHECK(outputs.commit());
  return found;
}

}  // namespace

void describe_sweep(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "compile a model for many targets, and show what each costs and gives");
  auto asked = std::make_shared<SweepCommand>();
  command->add_option("model", asked->model, "program that torch.export.save wrote")->type_name("FILE")->required();
  command
      ->add_option("--targets,-t", asked->question.targets,
                   "targets, or what their names begin with, e.g. ethos-u55,ethos-u85-256,cortex-m55; without: every "
                   "Ethos-U, cortex-m55 and vulkan")
      ->type_name("TARGET,...")
      ->delimiter(',');
  command
      ->add_option("--precision,-p", asked->question.precisions,
                   "int8, int16x8, int4 (weights), float, fp16 (Vulkan); of each target those that it has; without: "
                   "int8, and int16x8 or float")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      ->add_option("--memory-modes", asked->question.memory_modes,
                   "of Ethos-U: Vela's names, own: the product's usual one, all: each of Vela's configuration")
      ->type_name("MODE,...")
      ->delimiter(',');
  command->add_option("--calibrate", asked->calibrate, "samples for quantisation, as `compile` takes them")
      ->type_name("FILE");
  command
      ->add_option(
          "--evaluate,-e", asked->evaluate,
          "a data set, as `evaluate --data` takes it, to run every program on; without: the first 8 samples of "
          "the calibration")
      ->type_name("FILE|DIR");
  command->add_option("--labels,-l", asked->labels, "of the data set, as `evaluate` takes them")->type_name("FILE");
  command->add_option("--limit", asked->limit, "samples of the data set at most, 0: all")
      ->type_name("N")
      ->check(whole_number(0, most_runs))
      ->capture_default_str();
  command->add_option("--clock", asked->clock, "of the NPU in MHz, for inferences per second; without: Vela's")
      ->type_name("MHZ")
      ->check(whole_number(1, 100'000));
  command->add_option("--jobs,-j", asked->how.jobs, "programs at once, 0: one for each core")
      ->type_name("N")
      ->check(whole_number(0, SessionOptions::most_threads))
      ->capture_default_str();
  command->add_option("-o,--output", asked->output, "write the table: .html (it sorts), .csv or .json")
      ->type_name("FILE");
  std::vector<OptionInfo> described = options_of_integers();
  std::erase_if(described, [](const OptionInfo& o) { return o.name == "quantize" || o.name == "weights"; });
  auto options = add_described(*command, described);
  command->footer(
      "examples:\n"
      "  tosaic sweep digits.pt2 --calibrate digits_samples.npz\n"
      "  tosaic sweep digits.pt2 --targets ethos-u55,ethos-u65 --memory-modes all --clock 200 -o digits.html\n"
      "  tosaic sweep digits.pt2 --calibrate digits_samples.npz --evaluate digits_test.npz -p int8,int4 -o digits.csv");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      if (tool.shows_progress())
        asked->how.progress = [](std::size_t done, std::size_t total) { show_progress("sweeping", done, total); };
      const auto found = swept(*asked, *options, tool.sink());
      if (!found.ok()) return tool.fail(found.error());
      if (tool.json)
        tool.output += sweep_json(found->model, found->rows);
      else
        tool.print_text(sweep_text(found->model, found->rows));
    };
  });
}

}  // namespace tosaic::tools
