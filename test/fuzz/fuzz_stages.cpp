// SPDX-License-Identifier: Apache-2.0
// A graph's text with anything in it: what parses goes down the whole line for a float and an integer target.
#include "whole_line.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace tosaic;
  static const Target targets[] = {*find_target("tosa-fp", ""), *find_target("tosa-int", "")};
  auto graph = parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.txt");
  if (!graph.ok() || !test::small(*graph) || !test::unscaled(*graph)) return 0;
  for (const Target& target : targets)
    if (auto defect = test::whole_line(*graph, target)) {
      fprintf(stderr, "%s\n", defect->c_str());
      __builtin_trap();
    }
  return 0;
}
