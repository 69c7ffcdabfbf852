// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .vgf file: container, SPIR-V modules and graph are checked, or a diagnostic says what is wrong.
#include "formats/vgf/vgf_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  auto graph = tosaic::vgf::read_graph(tosaic::Bytes::copy(data, size), "fuzz.vgf");
  if (graph.ok() && !tosaic::verify(*graph).ok()) __builtin_trap();
  if (!graph.ok() && graph.error().internal) __builtin_trap();
  return 0;
}
