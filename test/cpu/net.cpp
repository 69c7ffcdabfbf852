// SPDX-License-Identifier: Apache-2.0
#include "cpu/net.h"

#include "simd/dispatch.h"

#include <hwy/targets.h>

namespace tosaic::test {

std::vector<std::int64_t> instruction_sets() { return hwy::SupportedAndGeneratedTargets(); }
void use(std::int64_t instruction_set) {
  hwy::SetSupportedTargetsForTest(instruction_set);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what,
                           const std::string& kernel) {
  ASSERT_TRUE(verify(net.graph).ok()) << verify(net.graph).error().message;
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  for (std::int64_t set : instruction_sets())
    for (int threads : {1, 2}) {
      use(set);
      const std::string name = what + " on " + hwy::TargetName(set) + ", " + std::to_string(threads) + " threads";
      auto program = cpu::Program::compile(net.graph, {.threads = threads});
      ASSERT_TRUE(program.ok()) << name << ": " << program.error().message;
      for (std::string_view used : program->kernels()) EXPECT_EQ(used, kernel.empty() ? used : kernel) << name;
      for (int again = 0; again < 2; ++again) {
        const auto got = program->run(net.inputs);
        ASSERT_TRUE(got.ok()) << name << ": " << got.error().message;
        for (std::size_t i = 0; i < wanted->size(); ++i) expect_same((*got)[i], (*wanted)[i], tolerance, name);
      }
    }
  use(0);
}

}  // namespace tosaic::test
