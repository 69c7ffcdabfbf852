// SPDX-License-Identifier: Apache-2.0
#include "session/on_vulkan.h"

#include "delegates/vulkan_graph/hosted_graph.h"
#include "shaders/compile.h"
#include "vulkan/compute_model.h"
#include "vulkan/compute_tiers.h"
#include "vulkan/model.h"

namespace tosaic {
namespace {

template <class Model>
Interface on_device(Interface interface, const Model& model) {
  interface.device = "vulkan: " + model.device();
  return interface;
}

// What ran on the device, or on the host between.
std::vector<OperationTime> operation_times(std::vector<vulkan::DispatchTime> dispatches) {
  std::vector<OperationTime> times;
  for (vulkan::DispatchTime& t : dispatches)
    times.push_back({std::move(t.kernel), t.seconds, "", std::move(t.value), std::move(t.place)});
  return times;
}

// What is common to both kinds of models: they compute into memory that they are given.
template <class Model>
class OnVulkan : public Runnable {
 public:
  OnVulkan(Interface interface, Model model)
      : Runnable(on_device(std::move(interface), model)), model_(std::move(model)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Tensor> outputs;
    for (const Tensor& t : inputs) in.push_back(t.data.data());
    for (const TensorType& type : interface().outputs) {
      std::vector<std::byte> data(type.storage_bytes());
      out.push_back(data.data());
      outputs.push_back({type, Bytes::of(std::move(data))});  // moved, its elements stay where they are
    }
    TOSAIC_CHECK(model_.run(in, out));
    return outputs;
  }
  double device_seconds() const override { return model_.device_seconds(); }

 protected:
  Model model_;
};

// By compute shaders.
class ByShaders : public OnVulkan<vulkan::ComputeModel> {
 public:
  using OnVulkan::OnVulkan;

  Result<RunnablePtr> clone() const override {
    TOSAIC_TRY(vulkan::ComputeModel made, model_.clone());
    return RunnablePtr(std::make_unique<ByShaders>(interface(), std::move(made)));
  }
  Status measure(bool on) override { return model_.measure(on); }
  std::vector<OperationTime> profile() const override { return operation_times(model_.times()); }
};

// The host between its subgraphs.
class Hosted : public Runnable {
 public:
  Hosted(Interface interface, delegates::HostedGraph graph)
      : Runnable(on_device(std::move(interface), graph)), graph_(std::move(graph)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return graph_.run(inputs); }
  Status reset() override {
    graph_.reset();
    return {};
  }
  Result<RunnablePtr> clone() const override {
    TOSAIC_TRY(delegates::HostedGraph made, graph_.clone());
    return RunnablePtr(std::make_unique<Hosted>(interface(), std::move(made)));
  }
  double device_seconds() const override { return graph_.device_seconds(); }
  Status measure(bool on) override { return graph_.measure(on); }
  std::vector<OperationTime> profile() const override { return operation_times(graph_.times()); }

 private:
  delegates::HostedGraph graph_;
};

}  // namespace

Result<RunnablePtr> run_vgf_on_vulkan(vgf::File file, const SessionOptions& options) {
  if (file.outputs.empty()) return error("vgf.empty", "the model has no outputs");
  TOSAIC_TRY(vulkan::Model model, vulkan::Model::load(std::move(file), {.device = options.vulkan_device}));
  Interface interface;
  interface.inputs = model.inputs();
  interface.outputs = model.outputs();
  return RunnablePtr(std::make_unique<OnVulkan<vulkan::Model>>(std::move(interface), std::move(model)));
}

Result<RunnablePtr> run_on_vulkan(Graph graph, const SessionOptions& options, Interface interface) {
  if (delegates::needs_host(graph)) {
    TOSAIC_TRY(auto hosted, delegates::HostedGraph::load(std::move(graph), options.vulkan_device, options.told));
    return RunnablePtr(std::make_unique<Hosted>(std::move(interface), std::move(hosted)));
  }
  TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(options.vulkan_device));
  TOSAIC_TRY(vulkan_program::Program program, shaders::compile(graph, {&tier, 1}));
  TOSAIC_TRY(vulkan::ComputeModel model,
             vulkan::ComputeModel::load(std::move(program), options.vulkan_device, options.told));
  return RunnablePtr(std::make_unique<ByShaders>(std::move(interface), std::move(model)));
}

}  // namespace tosaic
