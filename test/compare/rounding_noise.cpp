// SPDX-License-Identifier: Apache-2.0
// One tensor is rounded, the rest are floats: what that costs the result, computed by hand.
#include "compare/rounding_noise.h"

#include <gtest/gtest.h>

#include "partition/graph_text.h"

namespace tosaic {
namespace {

FloatProgram program_of(const std::string& text) {
  FloatProgram program{graph_of(text), {}, {}};
  program.held.assign(program.graph.values.size(), 0);
  program.group.assign(program.graph.values.size(), no_value);
  return program;
}

std::vector<RoundingNoise> noise_of(const FloatProgram& program, const Graph& quantised,
                                    const std::vector<std::vector<Tensor>>& samples) {
  auto found = find_rounding_noise(program, quantised, samples, {.threads = 1});
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : render(found.error(), false));
  return found.ok() ? *std::move(found) : std::vector<RoundingNoise>();
}

Tensor floats(std::vector<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return {{DType::f32, Shape{size}, {}}, Bytes::of(std::move(values))};
}

const char* const doubled_twice = R"(graph @main(%x: 4xf32) -> (%b) {
  %a: 4xf32 = aten.add.Tensor(%x, %x)
  %b: 4xf32 = aten.add.Tensor(%a, %a)
})";

// x = 1.4 2.4 3.4 4.4 becomes 1 2 3 4, so b = 4 x errs by 1.6 each.
// a = 2.8 4.8 6.8 8.8 becomes 3 6 6 9, so b errs by 0.4 2.4 1.6 0.4. b = 5.6 9.6 13.6 17.6 itself becomes 5 10 15 20.
TEST(RoundingNoise, each_tensor_alone_is_rounded) {
  const Graph quantised = graph_of(R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %a: 4xi8<3:0> = aten.add.Tensor(%x, %x)
  %b: 4xi8<5:0> = aten.add.Tensor(%a, %a)
})");
  const auto found = noise_of(program_of(doubled_twice), quantised, {{floats({1.4F, 2.4F, 3.4F, 4.4F})}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(quantised[found[0].value].name, "x");
  EXPECT_TRUE(found[0].calls.empty());
  EXPECT_NEAR(found[0].noise, 10.24 / 618.24, 1e-6);
  EXPECT_EQ(quantised[found[1].value].name, "a");
  EXPECT_NEAR(found[1].noise, 8.64 / 618.24, 1e-6);
  EXPECT_NEAR(found[2].noise, 8.24 / 618.24, 1e-6);
}

TEST(RoundingNoise, tensors_of_16_bits_are_not_asked_about) {
  const auto found = noise_of(program_of(doubled_twice), graph_of(R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %a: 4xi16<0.001:0> = aten.add.Tensor(%x, %x)
  %b: 4xi8<5:0> = aten.add.Tensor(%a, %a)
})"),
                              {{floats({1.4F, 2.4F, 3.4F, 4.4F})}});
  ASSERT_EQ(found.size(), 2u);  // x and b
  EXPECT_NEAR(found[1].noise, 8.24 / 618.24, 1e-6);
}

// A few of many samples are enough to rank by, from all over them.
TEST(RoundingNoise, samples_are_taken_from_all_over) {
  const Graph quantised = graph_of(R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %a: 4xi8<3:0> = aten.add.Tensor(%x, %x)
  %b: 4xi8<5:0> = aten.add.Tensor(%a, %a)
})");
  std::vector<std::vector<Tensor>> samples(9, {floats({0, 0, 0, 0})});
  samples[6] = {floats({1.4F, 2.4F, 3.4F, 4.4F})};
  const auto found = noise_of(program_of(doubled_twice), quantised, samples);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found[1].noise, 8.64 / 618.24, 1e-6);
}

}  // namespace
}  // namespace tosaic
