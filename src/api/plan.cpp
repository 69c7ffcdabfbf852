// SPDX-License-Identifier: Apache-2.0
// The quantisation plan of a program, for people and for other programs.
#include <fmt/format.h>
#include <filesystem>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "ir/states.h"
#include "pipeline/question.h"
#include "quantise/plan.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

constexpr std::string_view about =
    "# Edit it, and compile with --plan FILE. A call's line may end with float, int8 or int16x8; a tensor is i8 affine "
    "or\n"
    "# i16 symmetric. Lines of their own decide about more at once: a module, operator, node or line of the model, as "
    "in\n"
    "#   head: float\n";

struct Planned {
  Graph normal;  // with whole composites
  Expanded program;
  QuantisationPlan plan;
  std::string_view scheme;
  const Method* method;
};

Result<Planned> planned(const Program& program, const std::string& target, const Options& given, bool in_pieces) {
  TOSAIC_TRY(CompileOptions options, compile_options_for(target, given));
  if (!options.in_integers())
    return error("plan.floats", fmt::format("{} computes floats: nothing is quantised", target))
        .hint("give --quantize int8, or overrides, or a target of integers");
  TOSAIC_TRY(AskedProgram asked, asked_program(program.impl().exported, options));
  const Method* const method = asked.method;
  options.target.spec = asked.spec;
  TOSAIC_TRY(Graph graph, normal_form(std::move(asked.graph), form_for(options, asked.spec)));
  if (is_quantised(graph)) return already_quantised();
  widen_halves(graph);
  const QuantiseOptions how = how_to_quantise(options, method->graph);
  const StatesAsTensors states(graph);
  Graph normal = graph;
  Expanded expanded_program{normal, std::vector<char>(normal.values.size(), 0)};
  if (in_pieces) { TOSAIC_TRY(expanded_program, expanded(std::move(graph), how)); }
  TOSAIC_TRY(const Decisions decisions, decide(expanded_program, how.request, how));
  TOSAIC_CHECK(check_decisions(expanded_program, decisions, how, *how.spec));
  QuantisationPlan plan = plan_quantisation(expanded_program, how, {}, decisions);
  const std::string_view scheme = how.scheme == Scheme::int16x8 ? "int16x8" : "int8";
  return Planned{std::move(normal), std::move(expanded_program), std::move(plan), scheme, method};
}

Result<PrintedPlan> printed(const Program& program, const std::string& target, const Options& options) {
  TOSAIC_TRY(const Planned made, planned(program, target, options, true));
  const Graph& graph = made.program.graph;
  const std::string model = std::filesystem::path(program.impl().name).filename().string();
  return PrintedPlan{
      fmt::format("# {} for {}\n{}scheme {}\n{}", model, target, about, made.scheme, print(made.plan, graph, true)),
      fmt::format("{{\n  \"tosaic\": {},\n  \"command\": \"plan\",\n  \"model\": {},\n  \"target\": {},\n  "
                  "\"scheme\": \"{}\",\n  {}\n}}\n",
                  json_quote(version()), json_quote(model), json_quote(target), made.scheme,
                  print_json(made.plan, graph))};
}

Result<std::string> annotation_of(const Program& program, const std::string& target, const Options& options,
                                  bool in_pieces) {
  TOSAIC_TRY(const Planned made, planned(program, target, options, in_pieces));
  return fmt::format("{{\n  \"scheme\": \"{}\",\n  {}\n}}\n", made.scheme,
                     print_annotation(made.plan, made.program, made.normal, made.method->graph));
}

}  // namespace

Result<PrintedPlan> plan(const Program& program, const std::string& target, const Options& options) {
  return guarded(program.name(), [&] { return printed(program, target, options); });
}

Result<std::string> annotation(const Program& program, const std::string& target, const Options& options,
                               bool in_pieces) {
  return guarded(program.name(), [&] { return annotation_of(program, target, options, in_pieces); });
}

}  // namespace tosaic
