// SPDX-License-Identifier: Apache-2.0
// tosaic evaluate: a program on a whole data set, next to its floats.
#include <filesystem>
#include <memory>

#include "base/bytes.h"
#include "base/diagnostic.h"
#include "base/system/output.h"
#include "tools/progress.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

struct EvaluateCommand {
  std::string program, data, labels, floats, report;
  std::vector<std::string> weights, input_layout;
  SessionOptions session;
  EvaluateOptions options;
};

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Result<Session> open_program(const EvaluateCommand& asked, const Messages& messages) {
  SessionOptions options = asked.session;
  options.threads = 1;
  for (const std::string& path : asked.weights) {
    TOSAIC_TRY(Bytes content, map_file(path));
    options.data.emplace_back(path, std::move(content));
  }
  return Session::open(asked.program, options, messages);
}

Result<Evaluated> evaluated(const EvaluateCommand& asked, const Messages& messages) {
  Outputs outputs;
  for (const std::string& path : {asked.program, asked.data, asked.labels, asked.floats})
    if (!path.empty()) outputs.reads(path);
  if (!asked.report.empty()) TOSAIC_CHECK(outputs.plan(asked.report));  // before the work, not after it
  TOSAIC_TRY(const Session session, open_program(asked, messages));
  std::optional<Session> floats;
  if (!asked.floats.empty()) {
    TOSAIC_TRY(Program program, Program::open(asked.floats, messages));
    TOSAIC_TRY(program, program.with_input_layout(asked.input_layout));
    SessionOptions on_cpu;
    on_cpu.method = asked.session.method;
    on_cpu.threads = 1;
    TOSAIC_TRY(floats, Session::load(program, on_cpu, messages));
  }
  TOSAIC_TRY(const LabelledData data,
             open_data_set(asked.data, asked.labels, floats ? floats->inputs() : session.inputs(), messages));
  TOSAIC_TRY(Evaluated found, evaluate(session, floats ? &*floats : nullptr, data, asked.options));
  if (asked.options.progress) wipe_progress();
  found.program = file_name(asked.program);
  found.floats = file_name(asked.floats);
  if (!found.right && asked.floats.empty())
    messages(warning("evaluate.alone", "nothing says what is right: there are no labels and no floats")
                 .hint("--labels FILE, or an array 'labels' in the data; --float MODEL.pt2"));
  if (asked.report.empty()) return found;
  const std::string json = evaluation_json(found);
  TOSAIC_CHECK(outputs.write(asked.report, Bytes::copy(json.data(), json.size())));
  TOSAIC_CHECK(outputs.commit());
  return found;
}

}  // namespace

void describe_evaluate(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "run a program on a whole data set: how often it is right, next to its floats");
  auto asked = std::make_shared<EvaluateCommand>();
  command->add_option("program", asked->program, ".pte, .tosa, .vgf or .pt2")->type_name("FILE")->required();
  command
      ->add_option("--data,-d", asked->data,
                   "a .npz with an array per input, a .npy for a program with one input, or a folder of such files; an "
                   "array is one sample, or several along a first axis")
      ->type_name("FILE|DIR")
      ->required();
  command
      ->add_option("--labels,-l", asked->labels,
                   "a .npy of integers, or a text with a line 'NAME,LABEL' or 'LABEL' for each sample; without: the "
                   "array 'labels' of a .npz, or the names of the folder's folders")
      ->type_name("FILE");
  command->add_option("--float,-f", asked->floats, "the program in floats, to run next to it")->type_name("MODEL.pt2");
  command->add_option("--limit", asked->options.limit, "samples at most, 0: all")
      ->type_name("N")
      ->check(whole_number(0, most_runs))
      ->capture_default_str();
  command
      ->add_option("--input-layout", asked->input_layout,
                   "of the program in floats, as it was given to `compile`: nhwc")
      ->type_name("[INPUT=]LAYOUT")
      ->needs("--float");
  command->add_option("--worst", asked->options.worst, "samples to name that are farthest from floats")
      ->type_name("N")
      ->check(whole_number(0, most_runs))
      ->capture_default_str();
  command->add_option("--workers,-j", asked->options.workers, "samples that run at once, 0: one for each core")
      ->type_name("N")
      ->check(whole_number(0, SessionOptions::most_threads))
      ->capture_default_str();
  command->add_option("--device", asked->session.device, "what it runs on, as `tosaic run --device` takes it")
      ->type_name("DEVICE")
      ->capture_default_str();
  command->add_option("--method", asked->session.method, "method of the program")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--weights", asked->weights, "a .ptd file with what the .pte keeps outside itself")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--report", asked->report, "write the figures to a file, as --json prints them")
      ->type_name("FILE");
  command->footer(
      "examples:\n"
      "  tosaic evaluate digits.pte --data test.npz --float digits.pt2\n"
      "  tosaic evaluate digits.pte --data test/ --labels test.csv --report digits.json\n"
      "  tosaic evaluate digits_u55.pte --data test.npz --limit 100 --device ethos-u\n"
      "Images need the model's own preprocessing. In Python any data set serves, also one of images:\n"
      "  artifact.evaluate(torchvision.datasets.ImageFolder('val', transform))");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      if (tool.shows_progress())
        asked->options.progress = [](std::size_t done, std::size_t expected) {
          show_progress("evaluating", done, expected);
        };
      const auto found = evaluated(*asked, tool.sink());
      if (!found.ok()) return tool.fail(found.error());
      tool.output += tool.json ? evaluation_json(*found) : evaluation_text(*found);
    };
  });
}

}  // namespace tosaic::tools
