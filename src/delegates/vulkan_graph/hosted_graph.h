// SPDX-License-Identifier: Apache-2.0
// A TOSA graph with control flow or VARIABLEs on a Vulkan device. What lies between such nodes runs there, each
// subgraph as a program of shaders; the host reads conditions, says which subgraph is next, and keeps the variables.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "shaders/compile.h"
#include "vulkan/compute_model.h"

namespace tosaic::delegates {

// Does the graph hold what the host has to decide?
bool needs_host(const Graph& graph);

class HostedGraph {
 public:
  // `graph` has been verified. Errors: those of shaders::compile and of vulkan::ComputeModel::load. `told`: is given a
  // line for each subgraph, as there.
  static Result<HostedGraph> load(Graph graph, const std::string& device,
                                  const std::function<void(const std::string&)>& told = {});
  HostedGraph(HostedGraph&&) noexcept;
  HostedGraph& operator=(HostedGraph&&) noexcept;
  ~HostedGraph();

  const Graph& graph() const;
  std::string device() const;  // as a ComputeModel's; where nothing runs on the device, what was asked for
  // Errors: run.loop-limit, and those of ComputeModel::run. Variables keep their content from run to run.
  Result<std::vector<Tensor>> run(std::vector<Tensor> inputs);
  void reset();
  double device_seconds() const;  // of the last run, all subgraphs together
  // Time each dispatch and each node of the host from the next run on. Errors: vulkan.failed.
  Status measure(bool on);
  // Of the last run, in the order of the graph, a node's bodies after it; loops added up. A node of the host, by its
  // operator, without what ran in its bodies.
  std::vector<vulkan::DispatchTime> times() const;
  Result<HostedGraph> clone() const;

 private:
  struct Impl;
  explicit HostedGraph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tosaic::delegates
