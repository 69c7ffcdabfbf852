// SPDX-License-Identifier: Apache-2.0
// The quantisation plan of a program, for people and for other programs.
#include <fmt/format.h>
#include <filesystem>

#include "api/artifact.h"
#include "api/guard.h"
#include "api/program.h"
#include "ir/states.h"
#include "normalise/normalise.h"
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

Result<PrintedPlan> planned(const Program& program, const std::string& target, const Options& given) {
  TOSAIC_TRY(const CompileOptions options, compile_options_for(target, given));
  const Program::Impl& impl = program.impl();
  TOSAIC_TRY(const Method* method, only_method(impl.exported));
  if (!options.in_integers())
    return error("plan.floats", fmt::format("{} computes floats: nothing is quantised", target))
        .hint("give --quantize int8, or overrides, or a target of integers");
  TOSAIC_TRY(Graph graph, normalise(Graph(method->graph), {.fold_quantisation = true}, {}));
  if (is_quantised(graph)) return already_quantised();
  widen_halves(graph);
  const QuantiseOptions how = how_to_quantise(options, *method);
  const StatesAsTensors states(graph);
  TOSAIC_TRY(const Expanded expanded_program, expanded(std::move(graph), how));
  TOSAIC_TRY(const Decisions decisions, decide(expanded_program, how.request, how));
  TOSAIC_CHECK(check_decisions(expanded_program, decisions, how, *how.spec));
  const QuantisationPlan plan = plan_quantisation(expanded_program, how, {}, decisions);
  const std::string model = std::filesystem::path(impl.name).filename().string();
  const std::string_view scheme = how.scheme == Scheme::int16x8 ? "int16x8" : "int8";
  return PrintedPlan{
      fmt::format("# {} for {}\n{}scheme {}\n{}", model, target, about, scheme,
                  print(plan, expanded_program.graph, true)),
      fmt::format("{{\n  \"tosaic\": {},\n  \"command\": \"plan\",\n  \"model\": {},\n  \"target\": {},\n  "
                  "\"scheme\": \"{}\",\n  {}\n}}\n",
                  json_quote(version()), json_quote(model), json_quote(target), scheme,
                  print_json(plan, expanded_program.graph))};
}

}  // namespace

Result<PrintedPlan> plan(const Program& program, const std::string& target, const Options& options) {
  return guarded(program.name(), [&] { return planned(program, target, options); });
}

}  // namespace tosaic
