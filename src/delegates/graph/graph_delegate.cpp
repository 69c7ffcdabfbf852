// SPDX-License-Identifier: Apache-2.0
#include "delegates/graph/graph_delegate.h"

#include "execute/executable.h"

namespace tosaic::delegates {
namespace {

std::vector<contract::TensorInfo> infos_of(const Graph& graph, const std::vector<ValueId>& values,
                                           std::uint32_t flags) {
  std::vector<contract::TensorInfo> infos;
  for (ValueId v : values) infos.push_back(contract::TensorInfo::of(graph[v].type, graph[v].name, flags));
  return infos;
}

class GraphPayload : public contract::Payload {
 public:
  GraphPayload(contract::Description description, execute::Executable executable)
      : description_(std::move(description)), executable_(std::move(executable)) {}

  contract::Description describe() const override { return description_; }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int&) override {
    return executable_.run(inputs, outputs);
  }

  std::vector<contract::OperationTime> times() const override {
    std::vector<contract::OperationTime> times;
    for (cpu::StepTime& step : executable_.step_times())
      times.push_back({std::move(step.name), std::move(step.value), std::move(step.place), step.seconds});
    return times;
  }

  void measure(bool on) override { executable_.measure(on); }
  void reset() override { executable_.reset(); }
  Result<std::unique_ptr<contract::Payload>> clone(const contract::Lent& lent) const override {
    TOSAIC_TRY(auto executable, executable_.clone(lent.memory));
    return std::unique_ptr<contract::Payload>(std::make_unique<GraphPayload>(description_, std::move(executable)));
  }

 private:
  contract::Description description_;
  execute::Executable executable_;
};

using Make = Result<execute::Executable> (*)(Graph graph, const execute::Options& options);

// A payload and its data stay until it is closed, and nobody writes to them.
Result<std::unique_ptr<contract::Payload>> open(const contract::Opening& opening, Graph graph, std::uint32_t flags,
                                                Make make, int& status) {
  contract::Description description{infos_of(graph, graph.inputs, flags), infos_of(graph, graph.outputs, flags),
                                    opening.reference ? "interp" : "cpu"};
  auto executable = make(std::move(graph), {.threads = opening.threads,
                                            .interpret = opening.reference,
                                            .memory = opening.memory,
                                            .timed = opening.profile,
                                            .lasting_weights = true});
  if (!executable.ok()) {
    if (executable.error().code == "cpu.unsupported") status = TOSAIC_DELEGATE_UNSUPPORTED;
    return std::move(executable.error());
  }
  return std::unique_ptr<contract::Payload>(
      std::make_unique<GraphPayload>(std::move(description), *std::move(executable)));
}

}  // namespace

Result<std::unique_ptr<contract::Payload>> open_graph(const contract::Opening& opening, ReadGraph read, int& status) {
  TOSAIC_TRY(Graph graph, read(opening));
  return open(opening, std::move(graph), 0, execute::Executable::make, status);
}

Result<std::unique_ptr<contract::Payload>> open_lowered(const contract::Opening& opening, Graph graph,
                                                        std::uint32_t flags, int& status) {
  return open(opening, std::move(graph), flags, execute::Executable::of_lowering, status);
}

}  // namespace tosaic::delegates
