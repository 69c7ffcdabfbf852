// SPDX-License-Identifier: Apache-2.0
// Any bytes as the text of a graph: a diagnostic, or a graph whose text reads back to the same text.
#include <string_view>

#include "ir/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace tosaic;
  auto graph = parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.txt");
  if (!graph.ok()) {
    if (graph.error().internal) __builtin_trap();
    return 0;
  }
  if (!verify(*graph).ok()) __builtin_trap();
  const std::string text = print(*graph, ConstantText::all, true);
  auto again = parse(text, "fuzz.txt");
  if (!again.ok() || print(*again, ConstantText::all, true) != text) __builtin_trap();
  return 0;
}
