// SPDX-License-Identifier: Apache-2.0
#include "cpu/net.h"

#include "cpu/matrix/tiles.h"
#include "simd/dispatch.h"

#include <hwy/targets.h>

namespace tosaic::test {

std::vector<std::int64_t> instruction_sets() { return hwy::SupportedAndGeneratedTargets(); }
void use(std::int64_t instruction_set) {
  hwy::SetSupportedTargetsForTest(instruction_set);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

namespace {

struct Machine {
  std::int64_t instruction_set;
  cpu::Tiles tiles;
  std::string name;
};
// Every instruction set by vectors alone, and the best with tiles: what they are defined to do, and where this
// processor has them they themselves.
std::vector<Machine> machines() {
  std::vector<Machine> all;
  const std::vector<std::int64_t> sets = instruction_sets();
  for (const std::int64_t set : sets) all.push_back({set, cpu::Tiles::none, hwy::TargetName(set)});
  all.push_back({sets.front(), cpu::Tiles::plain_code, all.front().name + " with tiles in plain code"});
  if (cpu::tile_instructions_allowed())
    all.push_back({sets.front(), cpu::Tiles::instructions, all.front().name + " with tiles"});
  return all;
}

}  // namespace

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what,
                           const std::string& kernel) {
  ASSERT_TRUE(verify(net.graph).ok()) << verify(net.graph).error().message;
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  for (const Machine& machine : machines())
    for (int threads : {1, 2}) {
      use(machine.instruction_set);
      cpu::use_tiles(machine.tiles);
      const std::string name = what + " on " + machine.name + ", " + std::to_string(threads) + " threads";
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
  cpu::use_tiles(cpu::tile_instructions_allowed() ? cpu::Tiles::instructions : cpu::Tiles::none);
}

}  // namespace tosaic::test
