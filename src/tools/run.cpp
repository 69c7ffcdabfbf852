// SPDX-License-Identifier: Apache-2.0
// tosaic run: executes a .pte, .tosa or .pt2 here and writes its outputs as .npy files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <algorithm>
#include <memory>
#include <numeric>

#include "base/diagnostic.h"
#include "base/printable.h"
#include "base/system/environment.h"
#include "base/system/streams.h"
#include "tools/progress.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

std::string spread(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  if (times.size() == 1) return fmt::format("{:.3f} ms", times[0] * 1e3);
  return fmt::format("min {:.3f}, median {:.3f}, max {:.3f} ms over {} runs", times.front() * 1e3,
                     times[times.size() / 2] * 1e3, times.back() * 1e3, times.size());
}

// Where a kernel has several steps: all of a kernel together.
void print_kinds(Tool& tool, const std::vector<KindTime>& kinds) {
  double whole = 0;
  std::size_t steps = 0;
  for (const KindTime& kind : kinds) {
    whole += kind.seconds;
    steps += kind.count;
  }
  if (steps == kinds.size() || whole == 0) return;
  tool.print("  by kernel\n");
  for (const KindTime& kind : kinds)
    tool.print("  {:9.3f} ms {:5.1f} %  {}{}\n", kind.seconds * 1e3, kind.seconds / whole * 100,
               printable(kind.operation), kind.count > 1 ? fmt::format(", {} times", kind.count) : "");
}

// In columns: the time (of several runs median and shortest), what ran, the value that it computes, where the user's
// program asks for it.
void print_profile(Tool& tool, const std::vector<MeasuredOperation>& times, bool repeated) {
  constexpr std::size_t widest = 40;  // of a column
  const auto ran = [](const OperationTime& t) { return (t.within.empty() ? "" : "  ") + printable(t.operation); };
  std::size_t ran_width = 0, value_width = 0;
  for (const MeasuredOperation& t : times) {
    ran_width = std::max(ran_width, std::min(ran(t).size(), widest));
    value_width = std::max(value_width, std::min(printable(t.value).size(), widest));
  }
  if (repeated && !times.empty()) tool.print("     median       min\n");
  for (const MeasuredOperation& t : times) {
    const std::string least = repeated ? fmt::format(" {:9.3f}", t.least_seconds * 1e3) : "";
    std::string line = fmt::format("  {:9.3f}{} ms {:{}}  {:{}}  {}", t.seconds * 1e3, least, ran(t), ran_width,
                                   printable(t.value), value_width, printable(t.place));
    line.erase(line.find_last_not_of(' ') + 1);
    tool.print("{}\n", line);
  }
  print_kinds(tool, time_by_kind(times));
}

void print_text(Tool& tool, const RunRequest& request, const RunOutcome& outcome) {
  tool.print("{} on {}\n", request.program, outcome.device);
  for (std::size_t i = 0; i < outcome.input_types.size(); ++i)
    tool.print("  input {}    {}\n", i, outcome.input_types[i]);
  for (std::size_t i = 0; i < outcome.output_types.size(); ++i)
    tool.print(
        "  output {}   {}{}{}\n", i, outcome.output_types[i],
        outcome.output_values[i].empty() || outcome.output_types[i] == "None" ? "" : " " + outcome.output_values[i],
        i < outcome.written.size() && !outcome.written[i].empty() ? " -> " + outcome.written[i] : "");
  for (const std::string& state : outcome.states)
    tool.print("  state      {}{}\n", printable(state), request.states.empty() ? "" : " -> " + request.states);
  if (outcome.samples > 0)
    tool.print("  samples    {} in {:.3g} s, {:.1f} per second, {} at once\n", outcome.samples, outcome.seconds,
               static_cast<double>(outcome.samples) / outcome.seconds, outcome.workers);
  if (!outcome.run_seconds.empty())
    tool.print("  time       {}, load {:.1f} ms\n", spread(outcome.run_seconds), outcome.load_seconds * 1e3);
  if (!outcome.device_seconds.empty()) tool.print("  of these   {} on the device\n", spread(outcome.device_seconds));
  print_profile(tool, outcome.profile, outcome.run_seconds.size() > 1);
}

std::size_t failed(const RunOutcome& outcome) {
  return static_cast<std::size_t>(
      std::count_if(outcome.cases.begin(), outcome.cases.end(), [](const CaseOutcome& c) { return !c.passed; }));
}

void print_cases(Tool& tool, const RunRequest& request, const RunOutcome& outcome) {
  tool.print("{}: {} of {} cases passed\n", request.program, outcome.cases.size() - failed(outcome),
             outcome.cases.size());
  for (const CaseOutcome& c : outcome.cases)
    tool.print("  {} {} {}{}\n", printable(c.method), c.number, c.passed ? "passed" : "FAILED: ", c.why);
}

std::string json_cases(const RunOutcome& outcome) {
  std::string cases;
  for (const CaseOutcome& c : outcome.cases)
    cases += fmt::format("{}{{\"method\": {}, \"number\": {}, \"passed\": {}, \"why\": {}}}", cases.empty() ? "" : ", ",
                         json_text(c.method), c.number, c.passed, json_text(c.why));
  return fmt::format("\"cases\": [{}]", cases);
}

std::string json_members(const RunOutcome& outcome) {
  auto list = [](const std::vector<std::string>& items) {
    std::string text;
    for (const auto& i : items)
      if (!i.empty()) text += (text.empty() ? "" : ", ") + json_text(i);
    return "[" + text + "]";
  };
  std::string values;  // of outputs that are no tensors
  for (const auto& v : outcome.output_values) values += (values.empty() ? "" : ", ") + (v.empty() ? "null" : v);
  auto times = [](const std::vector<double>& all) {
    std::string text;
    for (double t : all) text += fmt::format("{}{:.9f}", text.empty() ? "" : ", ", t);
    return "[" + text + "]";
  };
  std::string operations;
  for (const MeasuredOperation& t : outcome.profile)
    operations += fmt::format(
        "{}{{\"operation\": {}, \"within\": {}, \"value\": {}, \"place\": {}, \"seconds\": {:.9f}, "
        "\"least_seconds\": {:.9f}}}",
        operations.empty() ? "" : ", ", json_text(t.operation), json_text(t.within), json_text(t.value),
        json_text(t.place), t.seconds, t.least_seconds);
  std::string kinds;
  for (const KindTime& kind : time_by_kind(outcome.profile))
    kinds += fmt::format("{}{{\"operation\": {}, \"count\": {}, \"seconds\": {:.9f}}}", kinds.empty() ? "" : ", ",
                         json_text(kind.operation), kind.count, kind.seconds);
  const std::string samples = outcome.samples == 0
                                  ? ""
                                  : fmt::format(", \"samples\": {}, \"workers\": {}, \"seconds\": {:.9f}",
                                                outcome.samples, outcome.workers, outcome.seconds);
  return fmt::format(
      "\"device\": {}, \"inputs\": {}, \"outputs\": {}, \"values\": [{}], \"written\": {}, \"states\": {}, "
      "\"load_seconds\": {:.9f}, "
      "\"run_seconds\": {}, \"device_seconds\": {}{}{}",
      json_text(outcome.device), list(outcome.input_types), list(outcome.output_types), values, list(outcome.written),
      list(outcome.states), outcome.load_seconds, times(outcome.run_seconds), times(outcome.device_seconds), samples,
      operations.empty() ? "" : ", \"operations\": [" + operations + "], \"kernels\": [" + kinds + "]");
}

void act(Tool& tool, RunRequest& request, bool trace) {
  if (!request.session.vulkan_device.empty() && request.session.device == "auto") request.session.device = "vulkan";
  if (trace)
    request.session.trace = [&tool](const std::string& line) {
      Diagnostic note = warning("run.trace", line);
      note.severity = Severity::note;
      say(tool.json ? render_json(note) + "\n" : printable(line) + "\n");
    };
  if (tool.verbose && !tool.json) request.session.told = [](const std::string& line) { say(printable(line) + "\n"); };
  if (tool.shows_progress())
    request.progress = [](std::size_t done, std::size_t expected) { show_progress("running", done, expected); };
  const auto outcome = run(request, tool.sink());
  if (!request.samples.empty() && request.progress) wipe_progress();
  if (!outcome.ok()) return tool.fail(outcome.error());
  if (tool.json)
    tool.print_json("run", outcome->cases.empty() ? json_members(*outcome) : json_cases(*outcome));
  else if (!tool.quiet)
    outcome->cases.empty() ? print_text(tool, request, *outcome) : print_cases(tool, request, *outcome);
  if (const std::size_t count = failed(*outcome); count > 0)
    tool.fail(error("run.case-failed", fmt::format("{} of the {} cases that are bundled with {} failed", count,
                                                   outcome->cases.size(), request.program))
                  .hint("--input runs the program with other inputs"));
}

}  // namespace

void describe_run(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "run a .pte, .tosa, .vgf or .pt2 on this machine, or the cases of a .bpte");
  auto request = std::make_shared<RunRequest>();
  auto trace = std::make_shared<bool>(false);
  auto level = std::make_shared<std::string>("none");
  auto list = std::make_shared<bool>(false);
  auto self_test = std::make_shared<bool>(false);
  command->add_option("program", request->program, ".pte, .bpte, .tosa, .vgf or .pt2")->type_name("FILE");
  command->add_flag("--list-devices", *list, "the Vulkan devices of this machine, instead of a run");
  command->add_option("--input,-i", request->inputs, "a .npy file; once per input, in order")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--samples", request->samples,
          "many inputs instead of one: a .npz with an array per input, a .npy for a program with one input, or "
          "a folder of such files; outputs are stacked along a new first axis")
      ->type_name("FILE|DIR");
  command->add_option("--output-dir", request->output_dir, "folder for output_N.npy, made when missing")
      ->type_name("DIR");
  command->add_option("--executor", request->session.executor, "cpu, or interp: the reference interpreter")
      ->check(one_of({"cpu", "interp"}))
      ->capture_default_str();
  command
      ->add_option(
          "--device", request->session.device,
          "vulkan: on a Vulkan device, by compute shaders; vulkan-ml: VGF by its ML extensions; cpu: on the CPU, as "
          "auto does; ethos-u: insist on the (simulated) NPU; ethos-u55-128: on that product")
      ->type_name("DEVICE")
      ->capture_default_str();
  command
      ->add_option("--vulkan-device", request->session.vulkan_device,
                   "index or a part of the name of a Vulkan device, instead of the best one")
      ->type_name("NAME");
  command->add_flag("--vulkan-self-test", *self_test,
                    "check every shader on the device, also those that have passed on its driver before");
  command->add_option("--data", request->data, "a .ptd file with what the .pte keeps outside itself")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--states", request->states,
                   "folder with NAME.npy for what the program keeps from run to run: read, where they exist, and "
                   "written after the last run")
      ->type_name("DIR");
  command->add_flag("--trace", *trace, "one line per NPU operation, with a checksum of its result, on stderr");
  command->add_option("--method", request->session.method, "method of a .pte")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--level", *level, "TOSA level whose limits a .tosa must hold")
      ->check(one_of({"none", "8k"}))
      ->capture_default_str();
  command->add_option("--threads", request->session.threads, "0: all cores; with --samples, so many at once")
      ->type_name("N")
      ->check(whole_number(0, SessionOptions::most_threads));
  command->add_flag("--profile", request->profile,
                    "how long each operation took, inside a delegate indented, and each kernel in all");
  command->add_option("--repeat", request->repeat, "timed runs, after one that warms up")
      ->type_name("N")
      ->check(whole_number(1, most_runs));
  command->footer(
      "examples:\n"
      "  tosaic run digits.pte --input digit.npy --output-dir out/\n"
      "  tosaic run net.tosa --input a.npy --input b.npy --executor interp --output-dir out/\n"
      "  tosaic run digits.pte --repeat 100 --profile\n"
      "  tosaic run digits.pte --samples test.npz --output-dir out/\n"
      "  tosaic run digits.vgf --device vulkan --vulkan-device llvmpipe\n"
      "  tosaic run digits_u55.pte --device ethos-u55-128 --data digits_weights.ptd --trace");
  command->callback([=, &tool] {
    if (!*list && request->program.empty()) throw CLI::RequiredError("program");
    tool.action = [=, &tool] {
      if (*list) return list_vulkan_devices(tool);
      if (*self_test) set_environment_variable("TOSAIC_VULKAN_SELF_TEST", "always");
      request->session.level_8k = *level == "8k";
      act(tool, *request, *trace);
    };
  });
}

}  // namespace tosaic::tools
