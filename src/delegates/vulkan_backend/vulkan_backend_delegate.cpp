// SPDX-License-Identifier: Apache-2.0
// "VulkanBackend": the payload is what ExecuTorch's own Vulkan flow wrote. Its operators are PyTorch's, so they are
// lowered when the payload is opened.
#include "delegates/graph/graph_delegate.h"
#include "delegates/vulkan/vulkan_delegate.h"
#include "delegates/vulkan_backend/chain.h"
#include "ops/tosa_op.h"
#include "shaders/compile.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::delegates {
namespace {

// The payload has 32 bits where the program may have 64.
constexpr std::uint32_t flags = TOSAIC_TENSOR_WIDER;

Result<Graph> graph_of(const contract::Opening& opening, int& status) {
  auto graph = vulkan_backend::tosa_graph(opening.payload, opening.data, opening.name);
  const auto is = [&](const char* code) { return graph.error().code == code; };
  if (!graph.ok() && !is("vulkan-backend.format") && !is("vulkan-backend.arguments"))
    status = TOSAIC_DELEGATE_UNSUPPORTED;
  return graph;
}

Result<std::unique_ptr<contract::Payload>> open_on_cpu(const contract::Opening& opening, const void*, int& status) {
  TOSAIC_TRY(Graph graph, graph_of(opening, status));
  return open_lowered(opening, std::move(graph), flags, status);
}

Result<std::unique_ptr<contract::Payload>> open_on_device(const contract::Opening& opening, const void*, int& status) {
  TOSAIC_TRY(const Graph graph, graph_of(opening, status));
  status = TOSAIC_DELEGATE_UNSUPPORTED;
  TOSAIC_CHECK(tosa::verify_graph(graph, shaders::spec()));
  const auto compiled = [&]() -> Result<vulkan_program::Program> {
    TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(opening.device));
    return shaders::compile(graph, {&tier, 1});
  };
  return open_on_vulkan(opening, compiled(), status, flags);
}

constexpr contract::Server cpu_server{open_on_cpu}, device_server{open_on_device};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_vulkan_backend_delegate(void) {
  static const tosaic_delegate_api api = tosaic::contract::table("VulkanBackend", tosaic::delegates::cpu_server);
  return &api;
}
const tosaic_delegate_api* tosaic_vulkan_backend_compute_delegate(void) {
  static const tosaic_delegate_api api = tosaic::contract::table("VulkanBackend", tosaic::delegates::device_server);
  return &api;
}
