// SPDX-License-Identifier: Apache-2.0
// tosaic explain: which nodes a target takes, and why the others stay behind.
#include <fmt/format.h>
#include <map>
#include <memory>

#include "tools/tool.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

void print_text(Tool& tool, const CompileOutcome& outcome, const std::string& target) {
  tool.print("{} takes {} of {} nodes, in {} delegate{}\n", target, outcome.delegated,
             outcome.nodes.size() - outcome.conversions, outcome.delegates, outcome.delegates == 1 ? "" : "s");
  std::map<std::string, std::pair<int, int>> by_op;
  for (const auto& n : outcome.nodes) {
    if (n.conversion) continue;
    auto& [inside, all] = by_op[n.op];
    inside += n.delegate >= 0;
    ++all;
  }
  for (const auto& [op, count] : by_op) tool.print("  {:>4}/{:<4} {}\n", count.first, count.second, op);
  if (tool.verbose)
    for (const auto& n : outcome.nodes)
      if (n.delegate >= 0 && !n.conversion)
        tool.print("  delegate {}  {} {}{}\n", n.delegate, n.op, n.name, n.place.empty() ? "" : " (" + n.place + ")");
  bool any = false;
  for (const auto& n : outcome.nodes) {
    if (n.delegate >= 0 || n.conversion) continue;
    if (!any) tool.print("\noutside the delegate:\n");
    any = true;
    tool.print("{}", n.reason_text);
  }
  tool.print("{}", conversions_text(outcome, "\noutside: "));
}

}  // namespace

void add_explain(CLI::App& app, Tool& tool) {
  auto* command = add_command(app, tool, "explain", "say which nodes a target takes, and why the others stay behind");
  auto request = std::make_shared<CompileRequest>();
  request->dry_run = true;
  command->add_option("model", request->model, "program that torch.export.save wrote")->type_name("FILE")->required();
  command
      ->add_option("--target,-t", request->target,
                   "what to explain for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->type_name("TARGET")
      ->check(known_target())
      ->capture_default_str();
  command->add_option("--tosa-spec", request->tosa_spec, "replaces the target's specification, e.g. TOSA-1.0+INT")
      ->type_name("SPEC");
  command->footer("example:\n  tosaic explain digits.pt2 --target tosa-int");
  const auto act = [=, &tool] {
    CompileOutcome outcome = compile(*request, tool.sink());
    if (outcome.error) return tool.fail(*outcome.error);
    if (tool.json)
      tool.output += outcome.manifest;
    else
      print_text(tool, outcome, request->target);
  };
  command->callback([=, &tool] { tool.action = act; });
}

}  // namespace tosaic::tools
