// SPDX-License-Identifier: Apache-2.0
// Any bytes at all: the .pt2 reader gives a graph that verifies, or a diagnostic.
#include <cstdlib>

#include "read/pt2.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto program = tosaic::read_pt2(tosaic::Bytes::copy(data, size), "fuzz.pt2", [](tosaic::Diagnostic) {});
  if (program.ok())
    for (const auto& method : program->methods)
      if (!verify(method.graph).ok()) std::abort();
  return 0;
}
