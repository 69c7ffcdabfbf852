// SPDX-License-Identifier: Apache-2.0
// A .pte through the runtime.
#include <fmt/format.h>
#include <algorithm>

#include "delegates/delegates.h"
#include "formats/pte/pte_file.h"
#include "kernels/lowered_kernel.h"
#include "runtime/method.h"
#include "session/by_method.h"
#include "session/devices.h"

namespace tosaic {
namespace {

Interface interface_of(const runtime::Method& method, const std::string& executor) {
  Interface interface;
  interface.inputs = method.input_types();
  interface.outputs = method.output_types();
  interface.other_inputs = method.other_inputs();
  interface.input_tree = method.input_tree();
  interface.output_tree = method.output_tree();
  for (const std::string& device : method.devices())
    interface.device += (interface.device.empty() ? "" : ", ") + device;
  if (interface.device.empty()) interface.device = executor;
  for (const auto& [name, type] : method.states()) interface.states.emplace_back(name, type);
  return interface;
}

class OnRuntime : public Runnable {
 public:
  OnRuntime(Interface interface, runtime::Method method) : Runnable(std::move(interface)), method_(std::move(method)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return method_.run(inputs); }
  FixedValues other_outputs() const override { return method_.other_outputs(); }
  Result<Tensor> state(std::size_t i) const override { return method_.state(i); }
  Status set_state(std::size_t i, const Tensor& content) override { return method_.set_state(i, content); }
  Status reset() override { return method_.reset(); }
  Result<RunnablePtr> clone() const override {
    TOSAIC_TRY(runtime::Method made, method_.clone());
    return RunnablePtr(std::make_unique<OnRuntime>(interface(), std::move(made)));
  }
  double device_seconds() const override { return method_.device_seconds(); }
  Status measure(bool on) override { return method_.measure(on); }
  std::vector<OperationTime> profile() const override {
    std::vector<OperationTime> times;
    for (runtime::OperationTime& t : method_.profile())
      times.push_back({std::move(t.operation), t.seconds, std::move(t.within), std::move(t.value), std::move(t.place)});
    return times;
  }

 private:
  runtime::Method method_;
};

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

// Who asks for none means the only one, which may be there at several sizes.
std::string asked_or_only(const pte::Program& program, const std::string& method, bool share_states) {
  if (program.plans.empty() || !asks_for_the_only_one(method) ||
      std::ranges::find(program.plans, method, &pte::Plan::name) != program.plans.end())
    return method;
  const std::string& first = program.plans[0].name;
  const std::size_t sizes = program.plans.size();
  return sizes == 1 || sizes_of_one_method(program, first, share_states).size() == sizes ? first : method;
}

}  // namespace

Result<RunnablePtr> load_pte(const Source& source, const SessionOptions& options, const Sink& sink) {
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
  SharedByMethods& by_methods = *source.by_methods;
  if (by_methods.methods.empty()) {
    TOSAIC_TRY(by_methods.memory, runtime::SharedMemory::of(program));
    for (const pte::Plan& plan : program.plans) by_methods.methods.push_back(plan.name);
  }
  how.shared = by_methods.memory;
  const std::string asked = asked_or_only(program, options.method, by_methods.memory != nullptr);
  std::vector<std::string> names = sizes_of_one_method(program, asked, by_methods.memory != nullptr);
  if (names.empty()) names = {asked};
  std::vector<RunnablePtr> methods;
  for (const std::string& name : names) {
    TOSAIC_TRY(runtime::Method method, runtime::Method::load(program, name, how));
    Interface interface = interface_of(method, options.executor);
    methods.push_back(std::make_unique<OnRuntime>(std::move(interface), std::move(method)));
  }
  return methods.size() == 1 ? std::move(methods[0]) : by_method(std::move(names), std::move(methods));
}

}  // namespace tosaic
