// SPDX-License-Identifier: Apache-2.0
// "VgfBackend" on the CPU: the payload is a VGF file, whose graphs and shaders are read back into TOSA.
#include "base/delegate_ids.h"
#include "delegates/graph/graph_delegate.h"
#include "formats/vgf/vgf_graph.h"

using namespace tosaic;

namespace {

constexpr contract::Server server{[](const contract::Opening& opening, const void*, int& status) {
  return delegates::open_graph(
      opening, [](const contract::Opening& o) { return vgf::read_graph(o.payload, o.name); }, status);
}};

}  // namespace

const tosaic_delegate_api* tosaic_vgf_delegate(void) {
  static const tosaic_delegate_api api = contract::table(delegate_ids::vgf, server);
  return &api;
}
