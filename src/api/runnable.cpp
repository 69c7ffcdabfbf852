// SPDX-License-Identifier: Apache-2.0
// A .tosa or .vgf on either executor or on Vulkan, a .pte through the runtime, a .pt2 as lowered float TOSA.
#include "api/runnable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "api/assumptions.h"
#include "api/by_method.h"
#include "api/by_sizes.h"
#include "api/compile_options.h"
#include "api/numbers_apart.h"
#include "api/program.h"
#include "api/stateful.h"
#include "delegates/delegates.h"
#include "delegates/vulkan_graph/hosted_graph.h"
#include "execute/executable.h"
#include "formats/bpte/bpte_file.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "ir/specialise.h"
#include "kernels/lowered_kernel.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "normalise/split_weights.h"
#include "ops/definitions/tosa_op.h"
#include "ops/operator_name.h"
#include "pipeline/pipeline.h"
#include "runtime/method.h"
#include "shaders/compile.h"
#include "targets/target.h"
#include "tidy/tidy.h"
#include "vulkan/compute_model.h"
#include "vulkan/compute_tiers.h"
#include "vulkan/model.h"

namespace tosaic {
namespace {

// The target whose payloads a device runs: "vulkan", "vulkan-ml", "ethos-u", or a product by its target's name;
// nullptr: the CPU.
Result<const Target*> target_of_device(const std::string& device) {
  if (device == "auto" || device == "cpu") return nullptr;
  std::vector<std::string> devices{"auto", "cpu"};
  const Target* product = nullptr;
  for (const Target& target : all_targets()) {
    if (target.device.empty()) continue;
    if (target.device == device || (target.simulated && target.name == device)) return &target;
    if (target.simulated) product = &target;
    if (devices.back() != target.device) devices.push_back(target.device);
  }
  if (product && device.starts_with(product->device)) return find_target(device, "").error();  // names the nearest
  return error("run.device", fmt::format("'{}' is no device", device))
      .hint(fmt::format("{}, or a product such as {}", fmt::join(devices, ", "), product ? product->name : "none"));
}

Diagnostic not_for(const Source& source, const Target& target) {
  std::size_t kin = 0;
  for (const Target& other : all_targets()) kin += other.family == target.family;
  return error("run.device", fmt::format("{} has no {} delegate", source.name, target.family))
      .at({source.name, 0, ""})
      .hint(fmt::format("compile the model with --target {}{}", target.name,
                        kin > 1 ? fmt::format(" or another {} target", target.family) : ""));
}

// Of programs that are graphs: any device but a simulated product runs them.
Status graph_may_run(const Source& source, const SessionOptions& options) {
  TOSAIC_TRY(const Target* target, target_of_device(options.device));
  if (target && target->simulated) return not_for(source, *target);
  return {};
}

// What is common to both kinds of models on Vulkan.
template <class Model>
void run_on_vulkan(Runnable& r, const std::shared_ptr<Model>& shared) {
  r.device = "vulkan: " + shared->device();
  r.device_seconds = [shared] { return shared->device_seconds(); };
  r.run = [shared, types = r.outputs](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Tensor> outputs;
    for (const Tensor& t : inputs) in.push_back(t.data.data());
    for (const TensorType& type : types) {
      std::vector<std::byte> data(type.storage_bytes());
      out.push_back(data.data());
      outputs.push_back({type, Bytes::of(std::move(data))});  // moved, its elements stay where they are
    }
    TOSAIC_CHECK(shared->run(in, out));
    return outputs;
  };
}

// By the ML extensions.
Result<Runnable> runnable_on_vulkan(vgf::File file, const SessionOptions& options, Runnable r = {}) {
  if (file.outputs.empty()) return error("vgf.empty", "the model has no outputs");
  TOSAIC_TRY(vulkan::Model model, vulkan::Model::load(std::move(file), {.device = options.vulkan_device}));
  auto shared = std::make_shared<vulkan::Model>(std::move(model));
  r.inputs = shared->inputs();
  r.outputs = shared->outputs();
  run_on_vulkan(r, shared);
  return r;
}

// What ran on a Vulkan device, or on the host between.
std::vector<OperationTime> operation_times(std::vector<vulkan::DispatchTime> dispatches) {
  std::vector<OperationTime> times;
  for (vulkan::DispatchTime& t : dispatches)
    times.push_back({std::move(t.kernel), t.seconds, "", std::move(t.value), std::move(t.place)});
  return times;
}

// By compute shaders.
Runnable runnable_model(Runnable about, vulkan::ComputeModel model) {
  auto shared = std::make_shared<vulkan::ComputeModel>(std::move(model));
  Runnable r = about;
  run_on_vulkan(r, shared);
  r.clone = [shared, about = std::move(about)]() -> Result<Runnable> {
    TOSAIC_TRY(vulkan::ComputeModel made, shared->clone());
    return runnable_model(about, std::move(made));
  };
  r.measure = [shared](bool on) { return shared->measure(on); };
  r.profile = [shared] { return operation_times(shared->times()); };
  return r;
}

// The host between its pieces.
Runnable runnable_hosted(Runnable about, delegates::HostedGraph graph) {
  auto shared = std::make_shared<delegates::HostedGraph>(std::move(graph));
  Runnable r = about;
  r.device = "vulkan: " + shared->device();
  r.device_seconds = [shared] { return shared->device_seconds(); };
  r.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  r.reset = [shared]() -> Status {
    shared->reset();
    return {};
  };
  r.clone = [shared, about = std::move(about)]() -> Result<Runnable> {
    TOSAIC_TRY(delegates::HostedGraph made, shared->clone());
    return runnable_hosted(about, std::move(made));
  };
  r.measure = [shared](bool on) { return shared->measure(on); };
  r.profile = [shared] { return operation_times(shared->times()); };
  return r;
}

Runnable runnable_executable(Runnable about, execute::Executable executable) {
  auto shared = std::make_shared<execute::Executable>(std::move(executable));
  Runnable r = about;
  r.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  r.reset = [shared]() -> Status {
    shared->reset();
    return {};
  };
  r.clone = [shared, about = std::move(about)]() -> Result<Runnable> {
    TOSAIC_TRY(execute::Executable made, shared->clone());
    return runnable_executable(about, std::move(made));
  };
  r.measure = [shared](bool on) -> Status {
    shared->measure(on);
    return {};
  };
  r.profile = [shared] {
    std::vector<OperationTime> times;
    for (cpu::StepTime& step : shared->step_times())
      times.push_back({std::move(step.name), step.seconds, "", std::move(step.value), std::move(step.place)});
    return times;
  };
  return r;
}

// A graph has no place of its own: it runs on the CPU, or on a Vulkan device by compute shaders, or as a VGF file. `r`
// says what is known of it besides.
Result<Runnable> runnable_graph(Graph graph, const Source& source, const SessionOptions& options, Runnable r = {}) {
  if (options.device == "vulkan-ml") {
    TOSAIC_TRY(vgf::File file, vgf::from_graph(graph));
    return runnable_on_vulkan(std::move(file), options, std::move(r));
  }
  TOSAIC_CHECK(graph_may_run(source, options));
  r.device = options.executor;
  for (ValueId v : graph.inputs) {
    r.inputs.push_back(graph[v].type);
    r.input_names.push_back(graph[v].name);
  }
  for (ValueId v : graph.outputs) {
    r.outputs.push_back(graph[v].type);
    r.output_names.push_back(graph[v].name);
  }
  if (options.device == "vulkan" && delegates::needs_host(graph)) {
    TOSAIC_TRY(auto hosted, delegates::HostedGraph::load(std::move(graph), options.vulkan_device, options.told));
    return runnable_hosted(std::move(r), std::move(hosted));
  }
  if (options.device == "vulkan") {
    TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(options.vulkan_device));
    TOSAIC_TRY(vulkan_program::Program program, shaders::compile(graph, {&tier, 1}));
    TOSAIC_TRY(vulkan::ComputeModel model,
               vulkan::ComputeModel::load(std::move(program), options.vulkan_device, options.told));
    return runnable_model(std::move(r), std::move(model));
  }
  TOSAIC_TRY(auto executable,
             execute::Executable::prepared(std::move(graph),
                                           {.threads = options.threads, .interpret = options.executor == "interp"}));
  return runnable_executable(std::move(r), std::move(executable));
}

Result<Runnable> load_tosa(Graph graph, const Source& source, const SessionOptions& options) {
  tosa::Spec spec = tosa::Spec::everything();
  if (options.level_8k) spec.level = tosa::level_8k;
  TOSAIC_CHECK(tosa::verify_graph(graph, spec));
  return runnable_graph(std::move(graph), source, options);
}

// Shaders of a file are programs of its own, which the path of the ML extensions binds and runs.
bool has_shaders(const vgf::File& file) {
  return std::ranges::any_of(file.segments, [](const vgf::Segment& s) { return s.kind == vgf::Kind::compute; });
}

Result<Runnable> load_vgf(const Source& source, const SessionOptions& options) {
  if (options.device.starts_with("vulkan")) {
    auto loaded = [&]() -> Result<std::optional<Runnable>> {
      TOSAIC_TRY(vgf::File file, vgf::read(source.file));
      if (options.device == "vulkan" && !has_shaders(file)) return std::optional<Runnable>();
      TOSAIC_TRY(Runnable r, runnable_on_vulkan(std::move(file), options));
      return std::optional(std::move(r));
    }();
    if (!loaded.ok()) return std::move(loaded.error()).at({source.name, 0, ""});
    if (*loaded) return std::move(**loaded);
  }
  TOSAIC_TRY(Graph graph, vgf::read_graph(source.file, source.name));
  return runnable_graph(std::move(graph), source, options);
}

// item() of what is returned: whoever runs the graph takes the number out.
void return_tensors_of_numbers(Graph& graph) {
  for (const Node& node : graph.nodes)
    if (gives_number(node)) std::ranges::replace(graph.outputs, node.outputs[0], node.inputs[0]);
  drop_dead(graph);
}

Result<Runnable> load_pte(const Source& source, const SessionOptions& options, const Sink& sink);

// What no TOSA graph says (results as large as values are), or no graph for a device (64-bit integers), runs as its
// .pte for the target does: delegates, and kernels beside them; `whole`: only conversions of integers.
Result<Runnable> compiled_to_run(Graph graph, const Source& source, SessionOptions options, const char* target,
                                 bool whole = false) {
  return_tensors_of_numbers(graph);
  Runnable known;
  for (ValueId v : graph.inputs) known.input_names.push_back(graph[v].name);
  for (ValueId v : graph.outputs) known.output_names.push_back(graph[v].name);
  ExportedProgram program;
  Method& method = program.methods.emplace_back();
  method.name = options.method = "forward";
  method.graph = std::move(graph);
  TOSAIC_TRY(CompileOptions how, compile_options_for(target, {}));
  how.require_full_delegation = whole;
  TOSAIC_TRY(const Compiled compiled, compile_model(program, how, {}));
  Source alone;
  alone.name = source.name;
  alone.file = compiled.program.joined();
  TOSAIC_TRY(Runnable r, load_pte(alone, options, {}));
  r.input_names = std::move(known.input_names);
  r.output_names = std::move(known.output_names);
  r.input_tree.clear();
  r.output_tree.clear();
  r.other_outputs = {};
  return r;
}

// A program whose sizes are numbers, without states, in floats.
Result<Runnable> lowered_to_run(Graph graph, const Source& source, const SessionOptions& options, const Sink& sink) {
  TOSAIC_CHECK(acts_on_operands(graph));
  TOSAIC_TRY(Graph normal, normalise(Graph(graph), {.fold_quantisation = false}, sink));
  if (options.device == "vulkan") split_weights(normal, shaders::spec().most_weight_bytes(false));
  return_tensors_of_numbers(normal);
  TOSAIC_CHECK(runs_as_it_stands(normal));
  Result<Lowered> lowered = lower(normal);
  if (!lowered.ok()) {
    Result<Runnable> compiled = compiled_to_run(std::move(graph), source, options, "tosa-fp");
    if (compiled.ok()) return compiled;
    return std::move(lowered).error();
  }
  tidy(lowered->graph);
  // Tokens are 64-bit integers to PyTorch, which the host narrows, and images bytes without a sign.
  const auto is_foreign = [](const Value& v) { return v.type.dtype == DType::i64 || v.type.dtype == DType::u8; };
  if (options.device == "vulkan" && std::ranges::any_of(lowered->graph.values, is_foreign)) {
    Result<Runnable> compiled = compiled_to_run(std::move(graph), source, options, "vulkan", true);
    if (compiled.ok()) return compiled;
  }
  return runnable_graph(std::move(lowered->graph), source, options);
}

// The same, and what it asserts of its numbers is looked at; devices would compute integers for it that they do not
// have.
Result<Runnable> asserted_to_run(Graph graph, const Source& source, const SessionOptions& options, const Sink& sink) {
  const auto assumptions = options.device.starts_with("vulkan") ? Assumptions() : Assumptions(graph);
  TOSAIC_TRY(Runnable r, lowered_to_run(std::move(graph), source, options, sink));
  return assumptions.checked(std::move(r));
}

bool asks_for_the_only_one(const std::string& method) { return method.empty() || method == SessionOptions().method; }

// A graph is no program.
Status without_methods(const Source& source, const SessionOptions& options) {
  if (asks_for_the_only_one(options.method)) return {};
  return error("method.missing", fmt::format("there is no method '{}': {} holds a graph, which has no methods",
                                             options.method, source.name))
      .at({source.name, 0, ""})
      .hint("run it without --method, in Python without method=");
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

Result<Runnable> load_program(const Program& program, const Source& source, const SessionOptions& options,
                              const Sink& sink) {
  TOSAIC_TRY(const Method* found, method_of(program.impl().exported, options.method));
  const Method& method = *found;
  if (source.together->methods.empty())
    for (const Method& m : program.impl().exported.methods) source.together->methods.push_back(m.name);
  const bool tosa = !method.graph.nodes.empty() && method.graph.nodes[0].op.is_tosa();  // graph text
  if (tosa) return load_tosa(method.graph, source, options);
  auto graph = std::make_shared<Graph>(method.graph);
  const StatesAsTensors states(*graph);
  Runnable known;
  if (!method.sample_inputs.empty()) known.examples = method.sample_inputs[0];
  if (!input_symbols(*graph).empty()) {
    known.device = options.executor;
    const MakeRunnable make = [source, options](Graph at_sizes) {  // when `sink` may be gone
      return asserted_to_run(std::move(at_sizes), source, options, {});
    };
    return numbers_apart(stateful(by_sizes(std::move(graph), make, std::move(known)), states), method.number_outputs,
                         method.fixed_outputs);
  }
  TOSAIC_TRY(Runnable r, asserted_to_run(std::move(*graph), source, options, sink));
  r.examples = known.examples;
  return numbers_apart(stateful(std::move(r), states), method.number_outputs, method.fixed_outputs);
}

bool has_delegate_of(const pte::Program& program, const Target& target) {
  for (const pte::Plan& plan : program.plans)
    for (const pte::Delegate& d : plan.delegates)
      if (d.id == target.delegate_id) return true;
  return false;
}

// Vulkan's shaders are made of any graph that a payload holds.
bool runs_on(const pte::Program& program, const Target& wanted) {
  if (wanted.delegate_id != "TosaicVulkan") return has_delegate_of(program, wanted);
  for (const pte::Plan& plan : program.plans)  // ExecuTorch's own, which no target writes
    if (std::ranges::any_of(plan.delegates, [](const pte::Delegate& d) { return d.id == "VulkanBackend"; }))
      return true;
  const auto& targets = all_targets();
  return std::ranges::any_of(targets, [&](const Target& t) { return !t.simulated && has_delegate_of(program, t); });
}

// The program runs on that device, and what is simulated is said to be that.
Status check_device(const pte::Program& program, const Source& source, const std::string& device, const Target* wanted,
                    const Sink& sink) {
  for (const Target& target : all_targets()) {
    const bool elsewhere = target.simulated || target.delegate_id == "TosaicVulkan";
    if (!elsewhere || !has_delegate_of(program, target)) continue;
    if (device == "cpu" && !target.simulated)
      return error("run.device",
                   fmt::format("{} has a {} delegate, which the CPU does not run", source.name, target.family))
          .at({source.name, 0, ""})
          .hint("compile the model with --target tosa-fp or tosa-int for the CPU");
    if (!target.simulated) break;
    if (device == "cpu")
      return error("run.device",
                   fmt::format("{} has an {} delegate, which the CPU does not run", source.name, target.family))
          .at({source.name, 0, ""})
          .hint("without --device its commands run on a simulated NPU");
    Diagnostic note =
        warning("run.simulated", fmt::format("the {} delegate runs on a functional simulator, checked against TOSA and "
                                             "not against silicon; its time is not that of the device",
                                             target.family));
    note.severity = Severity::note;
    if (sink) sink(note);
    break;
  }
  if (wanted && !runs_on(program, *wanted)) return not_for(source, *wanted);
  return {};
}

Runnable runnable_method(runtime::Method method, const std::string& executor) {
  auto shared = std::make_shared<runtime::Method>(std::move(method));
  Runnable r;
  r.inputs = shared->input_types();
  r.outputs = shared->output_types();
  r.other_inputs = shared->other_inputs();
  r.input_tree = shared->input_tree();
  r.output_tree = shared->output_tree();
  for (const std::string& device : shared->devices()) r.device += (r.device.empty() ? "" : ", ") + device;
  if (r.device.empty()) r.device = executor;
  r.device_seconds = [shared] { return shared->device_seconds(); };
  r.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  r.other_outputs = [shared] { return shared->other_outputs(); };
  for (const auto& [name, type] : shared->states()) r.states.emplace_back(name, type);
  r.state = [shared](std::size_t i) { return shared->state(i); };
  r.set_state = [shared](std::size_t i, const Tensor& content) { return shared->set_state(i, content); };
  r.reset = [shared] { return shared->reset(); };
  r.clone = [shared, executor]() -> Result<Runnable> {
    TOSAIC_TRY(runtime::Method made, shared->clone());
    return runnable_method(std::move(made), executor);
  };
  r.measure = [shared](bool on) { return shared->measure(on); };
  r.profile = [shared] {
    std::vector<OperationTime> times;
    for (runtime::OperationTime& t : shared->profile())
      times.push_back({std::move(t.operation), t.seconds, std::move(t.within), std::move(t.value), std::move(t.place)});
    return times;
  };
  return r;
}

// Who asks for none means the only one, which may be there at several sizes.
std::string asked_or_only(const pte::Program& program, const std::string& method, bool share_states) {
  if (program.plans.empty() || !asks_for_the_only_one(method) ||
      std::ranges::find(program.plans, method, &pte::Plan::name) != program.plans.end())
    return method;
  const std::string& first = program.plans[0].name;
  const std::size_t sizes = program.plans.size();
  return sizes == 1 || sizes_of_one_method(program, first, share_states).size() == sizes ? first : method;
}

Result<Runnable> load_pte(const Source& source, const SessionOptions& options, const Sink& sink) {
  TOSAIC_TRY(pte::Program program, pte::read(source.file, source.name));
  runtime::Options how;
  how.threads = options.threads;
  how.interpret = options.executor == "interp";
  how.file = source.name;
  how.trace = options.trace;
  how.told = options.told;
  TOSAIC_TRY(const Target* wanted, target_of_device(options.device));
  const std::string product = wanted && wanted->name == options.device ? wanted->name : "";
  how.kernels = kernels::lowered_kernels();
  using Graphs = DelegateDevices::Graphs;
  const Graphs graphs = options.device == "vulkan"      ? Graphs::vulkan
                        : options.device == "vulkan-ml" ? Graphs::vulkan_ml
                                                        : Graphs::cpu;
  how.delegates = all_delegates({graphs, options.vulkan_device, product});
  TOSAIC_CHECK(check_device(program, source, options.device, wanted, sink));
  TOSAIC_TRY(how.data, named_data(source.data));
  Together& together = *source.together;
  if (together.methods.empty()) {
    TOSAIC_TRY(together.memory, runtime::SharedMemory::of(program));
    for (const pte::Plan& plan : program.plans) together.methods.push_back(plan.name);
  }
  how.shared = together.memory;
  const std::string asked = asked_or_only(program, options.method, together.memory != nullptr);
  std::vector<std::string> names = sizes_of_one_method(program, asked, together.memory != nullptr);
  if (names.empty()) names = {asked};
  std::vector<Runnable> methods;
  for (const std::string& name : names) {
    TOSAIC_TRY(runtime::Method method, runtime::Method::load(program, name, how));
    methods.push_back(runnable_method(std::move(method), options.executor));
  }
  return methods.size() == 1 ? std::move(methods[0]) : by_method(std::move(names), std::move(methods));
}

}  // namespace

Result<Runnable> load_runnable(const Source& source, const SessionOptions& options, const Sink& sink) {
  if (options.executor != "cpu" && options.executor != "interp")
    return error("run.executor", fmt::format("'{}' is no executor", options.executor)).hint("cpu or interp");
  if (options.threads < 0 || options.threads > SessionOptions::most_threads)
    return error("run.threads", fmt::format("'threads' is {}", options.threads))
        .hint(fmt::format("0 (all cores) to {}", SessionOptions::most_threads));
  if (options.device.starts_with("vulkan") && options.executor == "interp")
    return error("run.device", "the reference interpreter runs on the CPU, not on a Vulkan device");
  if (source.program) return load_program(*source.program, source, options, sink);
  const std::string_view head = source.file.text().substr(0, 16);
  if (tosa_file::is_tosa(source.file)) {
    TOSAIC_CHECK(without_methods(source, options));
    TOSAIC_TRY(Graph graph, tosa_file::read(source.file, source.name));
    if (auto newer = tosa_file::newer_version(source.file, source.name); newer && sink) sink(*std::move(newer));
    return load_tosa(std::move(graph), source, options);
  }
  if (head.size() >= 8 && head.substr(4, 2) == "ET") return load_pte(source, options, sink);
  if (bpte::is_bpte(source.file)) {  // the program in it
    TOSAIC_TRY(bpte::File bundle, bpte::read(source.file, source.name));
    Source program = source;
    program.file = std::move(bundle.program);
    return load_pte(program, options, sink);
  }
  if (vgf::is_vgf(source.file)) {
    TOSAIC_CHECK(without_methods(source, options));
    return load_vgf(source, options);
  }
  if (head.starts_with("PK") || head.starts_with("graph ")) {
    TOSAIC_TRY(const Program program, read_program(source.file, source.name, sink));
    return load_program(program, source, options, sink);
  }
  return error("run.unknown-format", source.name + " is neither a .pte, a .bpte, a .tosa, a .vgf nor a .pt2")
      .at({source.name, 0, ""});
}

}  // namespace tosaic
