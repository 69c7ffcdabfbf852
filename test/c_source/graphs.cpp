// SPDX-License-Identifier: Apache-2.0
// The graphs of the CPU executor's tests, as C.
#include <fmt/format.h>

#include "c_source/batch.h"
#include "cpu/net.h"

namespace tosaic::test {
namespace {

Batch& batch() {
  static Batch all;
  return all;
}
std::size_t& refused() {
  static std::size_t count = 0;
  return count;
}

// The graphs are collected while the tests run, and are compiled together behind them.
class Compiled : public testing::Environment {
  void TearDown() override {
    const std::size_t count = batch().size();
    batch().run();
    fmt::print("{} graphs as C, {} with types that C does not have\n", count, refused());
    if (testing::GTEST_FLAG(filter) == "*") { EXPECT_GT(count, 4 * refused()); }
  }
};
[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new Compiled);

bool narrow_floats(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) {
    const DType type = v.type.dtype;
    return is_float(type) && type != DType::f32;
  });
}

}  // namespace

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what, const std::string&) {
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << wanted.error().message;
  const std::string name = what.empty() ? testing::UnitTest::GetInstance()->current_test_info()->name() : what;
  std::string why;
  const bool printed = batch().add(
      net.graph, net.inputs,
      [wanted = *wanted, tolerance, name](const std::vector<Tensor>& got) {
        ASSERT_EQ(got.size(), wanted.size()) << name;
        for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], wanted[i], tolerance, name);
      },
      &why);
  if (printed) return;
  ++refused();
  EXPECT_TRUE(narrow_floats(net.graph)) << name << ": " << why;
}

std::vector<std::int64_t> instruction_sets() { return {0}; }
void use(std::int64_t) {}

}  // namespace tosaic::test
