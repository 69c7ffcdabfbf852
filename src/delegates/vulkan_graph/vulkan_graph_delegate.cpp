// SPDX-License-Identifier: Apache-2.0
// "TOSABackend" and "VgfBackend" on a Vulkan device by compute shaders, which are made when the payload is opened.
#include <cstring>

#include "base/delegate_ids.h"
#include "delegates/tosa/read_tosa.h"
#include "delegates/vulkan/vulkan_delegate.h"
#include "delegates/vulkan_graph/hosted_graph.h"
#include "formats/vgf/vgf_graph.h"
#include "shaders/compile.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::delegates {
namespace {

// With the host between its subgraphs.
class HostedPayload : public contract::Payload {
 public:
  explicit HostedPayload(HostedGraph graph) : graph_(std::move(graph)) {}

  contract::Description describe() const override {
    const Graph& g = graph_.graph();
    const auto infos = [&](const std::vector<ValueId>& values) {
      std::vector<contract::TensorInfo> list;
      for (ValueId v : values) list.push_back(contract::TensorInfo::of(g[v].type, g[v].name, 0));
      return list;
    };
    return {infos(g.inputs), infos(g.outputs), "vulkan: " + graph_.device()};
  }
  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int&) override {
    const Graph& g = graph_.graph();
    std::vector<Tensor> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = g[g.inputs[i]].type;
      given.push_back({type, Bytes::copy(inputs[i], type.storage_bytes())});
    }
    if (wants_times_) TOSAIC_CHECK(graph_.measure(*wants_times_));
    wants_times_.reset();
    TOSAIC_TRY(const std::vector<Tensor> results, graph_.run(std::move(given)));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!results[i].data.empty()) std::memcpy(outputs[i], results[i].data.data(), results[i].data.size());
    return {};
  }
  double device_seconds() const override { return graph_.device_seconds(); }
  void measure(bool on) override { wants_times_ = on; }
  std::vector<contract::OperationTime> times() const override {
    std::vector<contract::OperationTime> times;
    for (vulkan::DispatchTime& t : graph_.times())
      times.push_back({std::move(t.kernel), std::move(t.value), std::move(t.place), t.seconds});
    return times;
  }
  void reset() override { graph_.reset(); }
  Result<std::unique_ptr<contract::Payload>> clone(const contract::Lent&) const override {
    TOSAIC_TRY(HostedGraph made, graph_.clone());
    return std::unique_ptr<contract::Payload>(std::make_unique<HostedPayload>(std::move(made)));
  }

 private:
  HostedGraph graph_;
  std::optional<bool> wants_times_;  // since the last execution
};

Result<std::unique_ptr<contract::Payload>> open_hosted(const contract::Opening& opening, const Graph& graph,
                                                       int& status) {
  std::function<void(const std::string&)> told;
  if (opening.told)
    told = [&](const std::string& line) { opening.told((opening.name.empty() ? "" : opening.name + ": ") + line); };
  auto loaded = HostedGraph::load(graph, opening.device, told);
  if (loaded.ok()) {
    auto payload = std::make_unique<HostedPayload>(*std::move(loaded));
    if (opening.profile) payload->measure(true);
    return std::unique_ptr<contract::Payload>(std::move(payload));
  }
  if (loaded.error().code.starts_with("vulkan.")) status = TOSAIC_DELEGATE_INCOMPATIBLE;
  return std::move(loaded.error()).at({opening.name, 0, ""});
}

using ReadGraph = Result<Graph> (*)(const contract::Opening& opening);

Result<std::unique_ptr<contract::Payload>> open(const contract::Opening& opening, ReadGraph read, int& status) {
  TOSAIC_TRY(const Graph graph, read(opening));
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  if (needs_host(graph)) return open_hosted(opening, graph, status);
  const auto compiled = [&]() -> Result<vulkan_program::Program> {
    TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(opening.device));
    return shaders::compile(graph, {&tier, 1});
  };
  return open_on_vulkan(opening, compiled(), status);
}

Result<std::unique_ptr<contract::Payload>> open_tosa(const contract::Opening& opening, const void*, int& status) {
  return open(opening, read_tosa, status);
}
Result<std::unique_ptr<contract::Payload>> open_vgf(const contract::Opening& opening, const void*, int& status) {
  return open(
      opening, [](const contract::Opening& o) { return vgf::read_graph(o.payload, o.name); }, status);
}

constexpr contract::Server tosa_server{open_tosa}, vgf_server{open_vgf};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_tosa_compute_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::tosa, tosaic::delegates::tosa_server);
  return &api;
}
const tosaic_delegate_api* tosaic_vgf_compute_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::vgf, tosaic::delegates::vgf_server);
  return &api;
}
