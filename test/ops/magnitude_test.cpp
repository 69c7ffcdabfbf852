// SPDX-License-Identifier: Apache-2.0
// sqrt(x^2 + y^2) in integers, next to the real one of the same quantised values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "interp/interp.h"
#include "lower/lower.h"

namespace tosaic {
namespace {

// The largest error in steps of the result, of legs up to `reach` of their quantised values.
double worst(const std::string& legs, const std::string& length, std::int64_t reach) {
  const auto graph =
      parse(fmt::format("graph @main(%x: 2x500x{0}, %y: 2x500x{0}) -> (%z) {{\n"
                        "  %z: 2x500x{1} = aten.hypot.default(%x, %y)\n}}",
                        legs, length));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  const auto lowered = lower(*graph);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message;
  std::mt19937 random(3);
  std::uniform_int_distribution<std::int64_t> any(-reach, reach);
  const TensorType type = (*graph)[graph->inputs[0]].type, to = (*graph)[graph->outputs[0]].type;
  std::vector<std::int64_t> x(1000), y(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = any(random), y[i] = any(random);
  x[0] = y[0] = -reach;
  const auto run =
      interp::run(lowered->graph, {{type, constant_bytes(type.dtype, x)}, {type, constant_bytes(type.dtype, y)}});
  EXPECT_TRUE(run.ok());
  const auto real = [&](std::int64_t q) {
    return type.scales->scale[0] * static_cast<double>(q - type.scales->zero_point[0]);
  };
  double found = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto z = element_as_integer(to.dtype, run->at(0).data.data(), i) - to.scales->zero_point[0];
    found =
        std::max(found, std::fabs(static_cast<double>(z) - std::hypot(real(x[i]), real(y[i])) / to.scales->scale[0]));
  }
  return found;
}

TEST(Magnitude, of_8_bits_is_right_within_a_step) {
  for (const std::int64_t reach : {127, 40, 12, 4}) EXPECT_LE(worst("i8<0.5:0>", "i8<0.36:-128>", reach), 0.9) << reach;
  EXPECT_LE(worst("i8<0.5:-20>", "i8<0.5:-128>", 100), 0.9) << "with a zero point";
}

// In one table of 16 bits a leg of 100 would be off by 400.
TEST(Magnitude, of_16_bits_keeps_what_is_quiet) {
  for (const std::int64_t reach : {32767, 3000, 300, 30, 10})
    EXPECT_LE(worst("i16<0.5:0>", "i16<0.71:0>", reach), 2) << reach;
}

TEST(Magnitude, of_16_bits_has_the_8_bits_that_it_may) {
  for (const std::int64_t reach : {32767, 3000, 300})
    EXPECT_LE(worst("i16<0.5:0>", "i8<91:-128>", reach), 0.9) << reach;
}

TEST(Magnitude, of_floats_alone_is_refused) {
  const auto graph = parse(
      "graph @main(%x: 4xf32, %y: 4xf32) -> (%z) {\n"
      "  %z: 4xi8<0.5:-128> = aten.hypot.default(%x, %y)\n}");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto lowered = lower(*graph);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, "quantise.float-operand");
}

// A function of one leg: sqrt(x^2 + 4).
TEST(Magnitude, next_to_a_number_is_a_table) {
  const auto graph = parse(
      "graph @main(%x: 4xi8<0.5:0>, %two: f32) -> (%z) {\n"
      "  %z: 4xi8<0.5:-128> = aten.hypot.default(%x, %two)\n}");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  Graph with_number = *graph;
  with_number[with_number.inputs[1]].constant = constant_bytes(DType::f32, std::vector<double>{-2.0});
  with_number.inputs.pop_back();
  const auto lowered = lower(with_number);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  ASSERT_EQ(lowered->graph.nodes.size(), 1u);
  const auto run = interp::run(lowered->graph, {{(*graph)[graph->inputs[0]].type,
                                                 constant_bytes(DType::i8, std::vector<std::int64_t>{0, 3, -3, 100})}});
  ASSERT_TRUE(run.ok());
  for (const auto& [i, steps] : {std::pair{0, 4}, {1, 5}, {2, 5}, {3, 100}})
    EXPECT_EQ(element_as_integer(DType::i8, run->at(0).data.data(), static_cast<std::size_t>(i)) + 128, steps);
}

}  // namespace
}  // namespace tosaic
