// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .tosa file: the reader returns a graph that verifies and can be written, or a diagnostic.
#include "formats/tosa/tosa_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  auto graph = tosaic::tosa_file::read(tosaic::Bytes::copy(data, size), "fuzz.tosa");
  if (graph.ok() && !tosaic::verify(*graph).ok()) __builtin_trap();
  if (!graph.ok() && graph.error().internal) __builtin_trap();
  return 0;
}
