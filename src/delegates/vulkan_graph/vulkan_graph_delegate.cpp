// SPDX-License-Identifier: Apache-2.0
// "TOSABackend" and "VgfBackend" on a Vulkan device by compute shaders, which are made when the payload is opened.
#include "delegates/vulkan/vulkan_delegate.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "shaders/compile.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::delegates {
namespace {

using ReadGraph = Result<Graph> (*)(const Bytes& payload, const std::string& name);

Result<std::unique_ptr<contract::Payload>> open(const contract::Opening& opening, ReadGraph read, int& status) {
  TOSAIC_TRY(const Graph graph, read(opening.payload, opening.name));
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  const auto compiled = [&]() -> Result<vulkan_program::Program> {
    TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(opening.device));
    return shaders::compile(graph, {&tier, 1});
  };
  return open_on_vulkan(opening, compiled(), status);
}

Result<std::unique_ptr<contract::Payload>> open_tosa(const contract::Opening& opening, const void*, int& status) {
  return open(opening, tosa_file::read, status);
}
Result<std::unique_ptr<contract::Payload>> open_vgf(const contract::Opening& opening, const void*, int& status) {
  return open(opening, vgf::read_graph, status);
}

constexpr contract::Server tosa_server{open_tosa}, vgf_server{open_vgf};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_tosa_compute_delegate(void) {
  static const tosaic_delegate_api api = tosaic::contract::table("TOSABackend", tosaic::delegates::tosa_server);
  return &api;
}
const tosaic_delegate_api* tosaic_vgf_compute_delegate(void) {
  static const tosaic_delegate_api api = tosaic::contract::table("VgfBackend", tosaic::delegates::vgf_server);
  return &api;
}
