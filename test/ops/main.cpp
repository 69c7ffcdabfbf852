// SPDX-License-Identifier: Apache-2.0
// In addition to gtest's own options: --list-domains prints every operator's calls as JSON lines for make_values.py.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "ops/domain.h"

namespace {
int list_domains() {
  int failures = 0;
  for (const auto& op : tosaic::all_aten())
    for (std::size_t i = 0; i < op.op.domain.size(); ++i) {
      auto parsed = tosaic::domain::parse(op, op.op.domain[i]);
      if (parsed.ok()) {
        std::puts(tosaic::domain::json(op, i, *parsed).c_str());
      } else {
        std::fputs(tosaic::render(parsed.error(), false).c_str(), stderr);
        ++failures;
      }
    }
  return failures ? 1 : 0;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list-domains") return list_domains();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
