// SPDX-License-Identifier: Apache-2.0
// "TOSABackend": the payload is a TOSA flatbuffer.
#include "base/delegate_ids.h"
#include "delegates/graph/graph_delegate.h"
#include "delegates/tosa/read_tosa.h"

using namespace tosaic;

namespace {

constexpr contract::Server server{[](const contract::Opening& opening, const void*, int& status) {
  return delegates::open_graph(opening, delegates::read_tosa, status);
}};

}  // namespace

const tosaic_delegate_api* tosaic_tosa_delegate(void) {
  static const tosaic_delegate_api api = contract::table(delegate_ids::tosa, server);
  return &api;
}
