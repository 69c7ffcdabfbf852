// SPDX-License-Identifier: Apache-2.0
#include "session/graph.h"

#include "execute/executable.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/tosa_op.h"
#include "session/devices.h"
#include "session/on_vulkan.h"

namespace tosaic {
namespace {

// On the fast executor or the interpreter.
class OnExecutor : public Runnable {
 public:
  OnExecutor(Interface interface, execute::Executable executable)
      : Runnable(std::move(interface)), executable_(std::move(executable)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return executable_.run(inputs); }
  Status reset() override {
    executable_.reset();
    return {};
  }
  Result<RunnablePtr> clone() const override {
    TOSAIC_TRY(execute::Executable made, executable_.clone());
    return RunnablePtr(std::make_unique<OnExecutor>(interface(), std::move(made)));
  }
  Status measure(bool on) override {
    executable_.measure(on);
    return {};
  }
  std::vector<OperationTime> profile() const override {
    std::vector<OperationTime> times;
    for (cpu::StepTime& step : executable_.step_times())
      times.push_back({std::move(step.name), step.seconds, "", std::move(step.value), std::move(step.place)});
    return times;
  }

 private:
  execute::Executable executable_;
};

Interface interface_of(const Graph& graph, const std::string& device) {
  Interface interface;
  interface.device = device;
  for (ValueId v : graph.inputs) {
    interface.inputs.push_back(graph[v].type);
    interface.input_names.push_back(graph[v].name);
  }
  for (ValueId v : graph.outputs) {
    interface.outputs.push_back(graph[v].type);
    interface.output_names.push_back(graph[v].name);
  }
  return interface;
}

// Any device but a simulated product runs graphs.
Status graph_may_run(const Source& source, const SessionOptions& options) {
  TOSAIC_TRY(const Target* target, target_of_device(options.device));
  if (target && target->simulated) return not_for(source, *target);
  return {};
}

}  // namespace

Result<RunnablePtr> run_graph(Graph graph, const Source& source, const SessionOptions& options) {
  if (options.device == "vulkan-ml") {
    const std::optional<Graph> older = extension::in_tosa_1_0(graph);
    TOSAIC_TRY(vgf::File file, vgf::from_graph(older ? *older : graph));
    return run_vgf_on_vulkan(std::move(file), options);
  }
  TOSAIC_CHECK(graph_may_run(source, options));
  Interface interface = interface_of(graph, options.executor);
  if (options.device == "vulkan") return run_on_vulkan(std::move(graph), options, std::move(interface));
  TOSAIC_TRY(auto executable,
             execute::Executable::prepared(std::move(graph),
                                           {.threads = options.threads, .interpret = options.executor == "interp"}));
  return RunnablePtr(std::make_unique<OnExecutor>(std::move(interface), std::move(executable)));
}

Result<RunnablePtr> run_given_graph(Graph graph, const Source& source, const SessionOptions& options) {
  tosa::Spec spec = tosa::Spec::everything();
  if (options.level_8k) spec.level = tosa::level_8k;
  TOSAIC_CHECK(tosa::verify_graph(graph, spec));
  return run_graph(std::move(graph), source, options);
}

Result<RunnablePtr> load_tosa(const Source& source, const SessionOptions& options, const Sink& sink) {
  TOSAIC_TRY(Graph graph, tosa_file::read(source.file, source.name));
  if (auto newer = tosa_file::newer_version(source.file, source.name); newer && sink) sink(*std::move(newer));
  return run_given_graph(std::move(graph), source, options);
}

}  // namespace tosaic
