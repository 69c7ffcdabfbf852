// SPDX-License-Identifier: Apache-2.0
// tosaic explain: which nodes a target takes, and why the others stay behind.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <memory>

#include "tools/described.h"
#include "tools/models.h"
#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

void print_text(Tool& tool, const Summary& summary, const std::string& target) {
  tool.print("{} takes {} of {} nodes, in {} delegate{}\n", target, summary.delegated,
             summary.nodes.size() - summary.conversions, summary.delegates, summary.delegates == 1 ? "" : "s");
  std::map<std::string, std::pair<int, int>> by_op;
  for (const auto& n : summary.nodes) {
    if (n.conversion) continue;
    auto& [inside, all] = by_op[n.op];
    inside += n.delegate >= 0;
    ++all;
  }
  for (const auto& [op, count] : by_op) tool.print("  {:>4}/{:<4} {}\n", count.first, count.second, op);
  if (tool.verbose)
    for (const auto& n : summary.nodes)
      if (n.delegate >= 0 && !n.conversion)
        tool.print("  delegate {}  {} {}{}\n", n.delegate, n.op, n.name, n.place.empty() ? "" : " (" + n.place + ")");
  bool any = false;
  for (const auto& n : summary.nodes) {
    if (n.delegate >= 0 || n.conversion) continue;
    if (!any) tool.print("\noutside the delegate:\n");
    any = true;
    tool.print("{}", render(*n.reason, false));
  }
  tool.print("{}", conversions_text(summary, "\noutside: "));
}

}  // namespace

void describe_explain(CLI::App* command, Tool& tool) {
  describe_command(*command, tool, "show which nodes a target takes, and why it does not take the others");
  auto models = std::make_shared<std::vector<std::string>>();
  auto target = std::make_shared<std::string>("tosa-int");
  command
      ->add_option("model", *models,
                   "program that torch.export.save wrote; several as NAME=FILE are methods of one program")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--target,-t", *target,
                   "what to explain for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->type_name("TARGET")
      ->check(known_target())
      ->capture_default_str();
  auto prints_plan = std::make_shared<bool>(false);
  command->add_flag("--plan", *prints_plan,
                    "print the quantisation plan instead: what becomes integers, of which width, who shares a scale; "
                    "`compile --plan FILE` reads it back, edited or not");
  std::vector<OptionInfo> asked;  // of what decides about placement
  for (const OptionInfo& option : compile_options())
    if (option.name == "sizes" || option.name == "quantize" || option.name == "weights" || option.name == "override" ||
        option.name == "tosa-spec" || option.name == "kv")
      asked.push_back(option);
  auto options = add_described(*command, asked);
  command->footer(
      "examples:\n"
      "  tosaic explain digits.pt2 --target tosa-int\n"
      "  tosaic explain digits.pt2 --target tosa-int --plan > digits.plan\n"
      "  tosaic explain prefill=prefill.pt2 decode=decode.pt2 --target tosa-fp");
  const auto act = [=, &tool] {
    Callbacks callbacks;
    callbacks.message = tool.sink();
    const auto named = name_models(*models, "explain");
    if (!named.ok()) return tool.fail(named.error());
    const auto programs = open_models(*named, callbacks.message);
    if (!programs.ok()) return tool.fail(programs.error());
    const auto program = named->methods.empty() ? Result<Program>(programs->front().second)
                                                : Program::together(*programs, named->methods[0].second);
    if (!program.ok()) return tool.fail(program.error());
    if (*prints_plan) {
      const auto printed = plan(*program, *target, *options);
      if (!printed.ok()) return tool.fail(printed.error());
      tool.output += tool.json ? printed->json : printed->text;
      return;
    }
    const auto verdict = explain(*program, *target, *options, callbacks);
    if (!verdict.ok()) return tool.fail(verdict.error());
    if (!tool.json) return print_text(tool, verdict->summary(), *target);
    const auto manifest = verdict->manifest();
    if (!manifest.ok()) return tool.fail(manifest.error());
    tool.output += *manifest;
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
