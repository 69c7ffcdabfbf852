// SPDX-License-Identifier: Apache-2.0
// tosaic explain: which nodes a target takes, and why the others stay behind.
#include <fmt/format.h>
#include <map>
#include <memory>

#include "tools/tool.h"

namespace tosaic::tools {
namespace {

void print_text(const CompileOutcome& outcome, const std::string& target) {
  fmt::print("{} takes {} of {} nodes, in {} delegate{}\n", target, outcome.delegated,
             outcome.nodes.size() - outcome.conversions, outcome.delegates, outcome.delegates == 1 ? "" : "s");
  std::map<std::string, std::pair<int, int>> by_op;
  for (const auto& n : outcome.nodes) {
    if (n.conversion) continue;
    auto& [inside, all] = by_op[n.op];
    inside += n.delegate >= 0;
    ++all;
  }
  for (const auto& [op, count] : by_op) fmt::print("  {:>4}/{:<4} {}\n", count.first, count.second, op);
  bool any = false;
  for (const auto& n : outcome.nodes) {
    if (n.delegate >= 0 || n.conversion) continue;
    if (!any) fmt::print("\noutside the delegate:\n");
    any = true;
    fmt::print("{}", n.reason_text);
  }
  fmt::print("{}", conversions_text(outcome, "\noutside: "));
}

void print_json(const CompileOutcome& outcome, const std::string& target) {
  fmt::print("{{\"target\": {}, \"delegated\": {}, \"delegates\": {}, \"nodes\": [", json_text(target),
             outcome.delegated, outcome.delegates);
  for (std::size_t i = 0; i < outcome.nodes.size(); ++i) {
    const auto& n = outcome.nodes[i];
    fmt::print("{}\n  {{\"name\": {}, \"op\": {}, \"place\": {}, \"delegate\": {}", i ? "," : "", json_text(n.name),
               json_text(n.op), json_text(n.place), n.delegate);
    if (n.delegate < 0) fmt::print(", \"code\": {}, \"reason\": {}", json_text(n.reason_code), json_text(n.reason));
    fmt::print("}}");
  }
  fmt::print("\n]}}\n");
}

}  // namespace

void add_explain(CLI::App& app, Tool& tool) {
  auto* command = app.add_subcommand("explain", "say which nodes a target takes, and why the others stay behind");
  auto request = std::make_shared<CompileRequest>();
  request->dry_run = true;
  command->add_option("model", request->model, "program that torch.export.save wrote")->required();
  command
      ->add_option("--target,-t", request->target,
                   "what to explain for, e.g. tosa-int or ethos-u55-128; a wrong name lists them all")
      ->capture_default_str();
  command->add_option("--tosa-spec", request->tosa_spec, "replaces the target's specification, e.g. TOSA-1.0+INT");
  add_json(*command, tool);
  command->footer("example:\n  tosaic explain digits.pt2 --target tosa-int");
  command->callback([=, &tool] {
    CompileOutcome outcome = compile(*request, tool.sink());
    if (outcome.error) return tool.fail(*outcome.error);
    tool.json ? print_json(outcome, request->target) : print_text(outcome, request->target);
  });
}

}  // namespace tosaic::tools
