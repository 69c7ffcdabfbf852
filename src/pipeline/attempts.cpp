// SPDX-License-Identifier: Apache-2.0
#include "pipeline/steps.h"

#include <fmt/format.h>

#include "ir/tosa_operators.h"
#include "pipeline/culprit.h"
#include "pipeline/self_check.h"

namespace tosaic {
namespace {

// A graph that any device takes: a compiler that fails on it fails on all.
Graph least_graph() {
  Graph graph;
  const TensorType type{DType::i8, Shape{1, 1, 1, 16}, {}};
  graph.inputs = {graph.add_value("x", type)};
  graph.outputs = {graph.add_value("y", type)};
  graph.nodes.push_back({tosa::op::identity, graph.inputs, {}, graph.outputs, nullptr, {}});
  return graph;
}

// What is wrong, of a node that may not go elsewhere: located there.
Diagnostic stays_wrong(Diagnostic why, const Node& node, const CompileOptions& options) {
  const char* option = options.single_delegate ? "--single-delegate" : "--require-full-delegation";
  why.place = {};
  why.context.clear();
  why.notes.push_back(fmt::format("{} is what {} gets wrong; {} allows no node outside the delegate", node.op,
                                  options.target.name, option));
  why.help = fmt::format(
      "without {} it runs on the CPU, or write it in another form there; --emit vela=DIR keeps what shows it", option);
  return located(std::move(why), node.loc);
}

constexpr int most_rounds = 8;
constexpr int most_tries = 80;  // of parts

// Tries leave no files.
Result<Emitted> emit_alone(const Graph& graph, const Context& c) {
  Options options = c.options.emit;
  if (c.target.emits && !c.target.emits->option.empty()) options.set(c.target.emits->option, "");
  return c.target.emit(graph, c.target, options, {});
}

bool compiler_works(const Context& c) {
  const Graph least = least_graph();
  const auto made = emit_alone(least, c);
  if (!made.ok() || !c.options.self_check) return made.ok();
  return !self_check_alone(c.target, least, *made, {}, c.options.quantise.threads);
}

// A part of a region by itself. What is not its compiler's fault is none here.
std::optional<Fault> wrong_with(const Graph& part, const GivenInputs& inputs, const Context& c) {
  auto graph = lower_region(part, c);
  if (!graph.ok()) return std::nullopt;
  Node call;
  call.inputs = graph->inputs;
  tidy_region(*graph, &call, c);
  if (graph->inputs.empty() || !tosa::verify_graph(*graph, c.target.spec).ok()) return std::nullopt;
  const auto made = emit_alone(*graph, c);
  if (!made.ok()) return of_the_graph(made.error()) ? std::optional(Fault{0, made.error(), {}}) : std::nullopt;
  if (!c.options.self_check) return std::nullopt;
  return self_check_alone(c.target, *graph, *made, inputs, c.options.quantise.threads);
}

}  // namespace

Result<Compiled> compile_until_right(Typed program, const Context& c) {
  const std::optional<GraphReport> report = c.report ? std::optional(*c.report) : std::nullopt;
  SetAside aside;
  int tries = 0;
  for (int round = 1;; ++round) {
    std::vector<Diagnostic> said;  // for the user, when it is known which round it was that counts
    Context in_round = c;
    in_round.callbacks.sink = [&said](Diagnostic why) { said.push_back(std::move(why)); };
    program.for_a_delegate = c.given && aside.empty();
    Result<Compiled> made = compile_once(program, in_round);
    if (!made.ok() || made->faults.empty()) {
      for (const auto& list : {aside.warnings(), said})
        for (const Diagnostic& why : list) c.say(why);
      return made;
    }
    if (round == 1 && !compiler_works(c)) return made->faults[0].why;
    for (const Fault& fault : made->faults) {
      const Graph& region = made->partition.regions[fault.region];
      if (round == most_rounds || tries >= most_tries) {
        aside.mark_all(program.graph, region, fault.why, c.target.name);
        continue;
      }
      const Culprit found = find_culprit(region, fault, [&](const Graph& part, const GivenInputs& inputs) {
        const bool more = ++tries <= most_tries && c.not_cancelled().ok();
        return more ? wrong_with(part, inputs, c) : std::nullopt;
      });
      TOSAIC_CHECK(c.not_cancelled());
      const Node& node = region.nodes[found.node];
      if (c.options.single_delegate || c.options.require_full_delegation)
        return stays_wrong(fault.why, node, c.options);
      aside.mark(program.graph, node, region, found.right_alone, fault.why, c.target.name);
    }
    if (report) *c.report = *report;  // what is told is of the round that counts
  }
}

}  // namespace tosaic
