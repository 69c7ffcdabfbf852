// SPDX-License-Identifier: Apache-2.0
// The quantisation plan of a program, for people and for other programs.
#include <fmt/format.h>
#include <filesystem>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "pipeline/methods.h"
#include "pipeline/question.h"
#include "pipeline/steps.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

constexpr std::string_view about =
    "# Edit it, and compile with --plan FILE. A call's line may end with float, int8 or int16x8; a tensor is i8 affine "
    "or\n"
    "# i16 symmetric. Lines of their own decide about more at once: a module, operator, node or line of the model, as "
    "in\n"
    "#   head: float\n";

Result<CompileOptions> integer_options(const std::string& target, const Options& given) {
  TOSAIC_TRY(CompileOptions options, compile_options_for(target, given));
  if (options.in_integers()) return options;
  return error("plan.floats", fmt::format("{} computes floats: nothing is quantised", target))
      .hint("give --quantize int8, or overrides, or a target of integers");
}

const char* scheme_of(const CompileOptions& options) {
  return options.quantise.scheme == Scheme::int16x8 ? "int16x8" : "int8";
}

PrintedPlan printed(const PlannedMethod& made, const std::string& file, const CompileOptions& options) {
  const Graph& graph = made.program.graph;
  const std::string model = std::filesystem::path(file).filename().string(), &target = options.target.name;
  const char* scheme = scheme_of(options);
  return {
      fmt::format("# {} for {}\n{}scheme {}\n{}", model, target, about, scheme, print(made.plan, graph, true)),
      fmt::format("{{\n  \"tosaic\": {},\n  \"command\": \"plan\",\n  \"model\": {},\n  \"target\": {},\n  "
                  "\"scheme\": \"{}\",\n  {}\n}}\n",
                  json_quote(version()), json_quote(model), json_quote(target), scheme, print_json(made.plan, graph))};
}

// Of one method, or of several by their names.
Result<PrintedPlan> printed(const Program& exported, const std::string& target, const Options& given) {
  TOSAIC_TRY(const CompileOptions options, integer_options(target, given));
  TOSAIC_TRY(const Program program, exported.with_input_layout(options.input_layout));
  const Program::Impl& impl = program.impl();
  TOSAIC_TRY(std::vector<AskedMethod> methods, asked_methods(impl.exported, options));
  const bool named = methods.size() > 1 || !impl.parts.empty();
  PrintedPlan all;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::string& name = methods[i].method->name;
    auto planned = plan_method(std::move(methods[i]), options, true);
    if (!planned.ok() && named) planned.error().notes.push_back(fmt::format("in method '{}'", name));
    TOSAIC_TRY(const PlannedMethod made, std::move(planned));
    const PrintedPlan one = printed(made, impl.parts.empty() ? impl.name : impl.parts[i].impl().name, options);
    all.text += (named ? fmt::format("method {}\n", name) : "") + one.text;
    all.json += !named ? one.json : fmt::format("{}{}: {}", i == 0 ? "{" : ", ", json_quote(name), one.json);
  }
  if (named) all.json += "}\n";
  return all;
}

Result<std::string> annotation_of(const Program& program, const std::string& target, const Options& given,
                                  bool in_pieces) {
  TOSAIC_TRY(CompileOptions options, integer_options(target, given));
  options.fold_as_pytorch = true;
  TOSAIC_TRY(AskedMethod asked, asked_method(program.impl().exported, options));
  TOSAIC_TRY(const PlannedMethod made, plan_method(std::move(asked), options, in_pieces));
  return fmt::format("{{\n  \"scheme\": \"{}\",\n  {}\n}}\n", scheme_of(options),
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

Result<std::vector<std::pair<std::string, OwnedTensor>>> equalized_parameters(const Program& program,
                                                                              const std::string& target,
                                                                              const Options& options,
                                                                              const Callbacks& callbacks,
                                                                              const SampleSource& samples) {
  return guarded(program.name(), [&]() -> Result<std::vector<std::pair<std::string, OwnedTensor>>> {
    TOSAIC_TRY(CompileOptions how, integer_options(target, options));
    how.fold_as_pytorch = true;
    TOSAIC_TRY(const Method* const method, only_method(program.impl().exported));
    TOSAIC_TRY(const CompileCallbacks calls, callbacks_of(program, callbacks, samples));
    TOSAIC_TRY(const auto changed, equalised_parameters({*method, how, calls, samples_given(*method, calls)}));
    std::vector<std::pair<std::string, OwnedTensor>> all;
    for (const auto& [name, tensor] : changed) all.emplace_back(name, owned(tensor));
    return all;
  });
}

}  // namespace tosaic
