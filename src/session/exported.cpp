// SPDX-License-Identifier: Apache-2.0
// A .pt2 as lowered float TOSA.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "base/option_check.h"
#include "ir/specialise.h"
#include "ir/states.h"
#include "pipeline/in_floats/in_floats.h"
#include "pipeline/pipeline.h"
#include "session/assumptions.h"
#include "session/by_sizes.h"
#include "session/graph.h"
#include "session/scalar_outputs.h"
#include "session/stateful.h"
#include "shaders/compile.h"

namespace tosaic {
namespace {

// What no TOSA graph says (results as large as values are), or no graph for a device (64-bit integers), runs as its
// .pte for the target does: delegates, and kernels outside them; `whole`: only conversions of integers.
Result<RunnablePtr> compiled_to_run(Graph graph, const Source& source, SessionOptions options, const char* target,
                                    bool whole = false) {
  return_scalars_as_tensors(graph);
  std::vector<std::string> inputs, outputs;
  for (ValueId v : graph.inputs) inputs.push_back(graph[v].name);
  for (ValueId v : graph.outputs) outputs.push_back(graph[v].name);
  ExportedProgram program;
  Method& method = program.methods.emplace_back();
  method.name = options.method = "forward";
  method.graph = std::move(graph);
  CompileOptions how;
  TOSAIC_TRY(how.target, find_target(target, ""));
  TOSAIC_TRY(how.emit, checked_options({}, how.target.options));
  how.require_full_delegation = whole;
  TOSAIC_TRY(const Compiled compiled, compile_model(program, how, {}));
  Source alone;
  alone.name = source.name;
  alone.file = compiled.program.joined();
  TOSAIC_TRY(RunnablePtr made, load_pte(alone, options, {}));
  Interface& interface = made->interface();
  interface.input_names = std::move(inputs);
  interface.output_names = std::move(outputs);
  interface.input_tree.clear();
  interface.output_tree.clear();
  return made;
}

// A program whose sizes are numbers, without states, in floats.
Result<RunnablePtr> lowered_to_run(Graph graph, const Source& source, const SessionOptions& options, const Sink& sink) {
  const std::uint64_t most_weight_bytes = options.device == "vulkan" ? shaders::spec().most_weight_bytes(false) : 0;
  TOSAIC_TRY(const Graph normal, normal_in_floats(graph, most_weight_bytes, sink));
  Result<Graph> lowered = tosa_in_floats(normal);
  if (!lowered.ok()) {
    Result<RunnablePtr> compiled = compiled_to_run(std::move(graph), source, options, "tosa-fp");
    if (compiled.ok()) return compiled;
    return std::move(lowered).error();
  }
  // Tokens are 64-bit integers to PyTorch, which the host narrows, and images bytes without a sign.
  const auto is_foreign = [](const Value& v) { return v.type.dtype == DType::i64 || v.type.dtype == DType::u8; };
  if (options.device == "vulkan" && std::ranges::any_of(lowered->values, is_foreign)) {
    Result<RunnablePtr> compiled = compiled_to_run(std::move(graph), source, options, "vulkan", true);
    if (compiled.ok()) return compiled;
  }
  return run_graph(*std::move(lowered), source, options);
}

// The same, and what it asserts of its numbers is looked at; devices would compute integers for it that they do not
// have.
Result<RunnablePtr> asserted_to_run(Graph graph, const Source& source, const SessionOptions& options,
                                    const Sink& sink) {
  const auto assumptions = options.device.starts_with("vulkan") ? Assumptions() : Assumptions(graph);
  TOSAIC_TRY(RunnablePtr made, lowered_to_run(std::move(graph), source, options, sink));
  return assumptions.checked(std::move(made));
}

// Of one of several methods the buffers would be its own alone.
Result<const Method*> method_of(const ExportedProgram& program, const std::string& name) {
  if (program.methods.size() == 1 && asks_for_the_only_one(name)) return &program.methods[0];
  std::vector<std::string> names;
  for (const Method& method : program.methods) {
    names.push_back(method.name);
    if (method.name != name) continue;
    if (method.graph.states.empty() || program.methods.size() == 1) return &method;
    return error("model.state",
                 fmt::format("method '{}' keeps '{}' together with other methods, which an exported program does not",
                             name, method.graph.states[0].name))
        .hint("compile the methods and run the .pte");
  }
  return error("method.missing", fmt::format("the program has no method '{}'", name))
      .hint(fmt::format("its methods are {}", fmt::join(names, ", ")));
}

}  // namespace

Result<RunnablePtr> load_exported(const ExportedProgram& program, const Source& source, const SessionOptions& options,
                                  const Sink& sink) {
  TOSAIC_TRY(const Method* found, method_of(program, options.method));
  const Method& method = *found;
  if (source.by_methods->methods.empty())
    for (const Method& m : program.methods) source.by_methods->methods.push_back(m.name);
  const bool tosa = !method.graph.nodes.empty() && method.graph.nodes[0].op.is_tosa();  // graph text
  if (tosa) return run_given_graph(method.graph, source, options);
  auto graph = std::make_shared<Graph>(method.graph);
  const StatesAsTensors states(*graph);
  Interface known;
  if (!method.sample_inputs.empty()) known.examples = method.sample_inputs[0];
  if (!input_symbols(*graph).empty()) {
    known.device = options.executor;
    const MakeRunnable make = [source, options](Graph at_sizes) {  // when `sink` may be gone
      return asserted_to_run(std::move(at_sizes), source, options, {});
    };
    return split_scalar_outputs(stateful(by_sizes(std::move(graph), make, std::move(known)), states),
                                method.scalar_outputs, method.fixed_outputs);
  }
  TOSAIC_TRY(RunnablePtr made, asserted_to_run(std::move(*graph), source, options, sink));
  made->interface().examples = std::move(known.examples);
  return split_scalar_outputs(stateful(std::move(made), states), method.scalar_outputs, method.fixed_outputs);
}

}  // namespace tosaic
