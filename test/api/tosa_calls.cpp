// SPDX-License-Identifier: Apache-2.0
// include/tosaic/tosa.hpp: calls that are evaluated by themselves, and arguments that are wrong.
#include <gtest/gtest.h>

#include "tosaic/tosa.hpp"

namespace tosaic {
namespace {

TEST(TosaCalls, EveryOperatorHasItsOverloads) {
  const auto all = tosa_operators();
  ASSERT_TRUE(all.ok());
  EXPECT_GT(all->size(), 60u);
  for (const TosaOperator& op : *all) {
    ASSERT_EQ(op.schemas.size(), 2u);
    EXPECT_TRUE(op.schemas[0].starts_with("tosaic::" + op.name + "(")) << op.schemas[0];
    EXPECT_TRUE(op.schemas[1].starts_with("tosaic::" + op.name + ".integer(")) << op.schemas[1];
    EXPECT_FALSE(op.results.empty() || op.types.empty()) << op.name;
  }
}

TEST(TosaCalls, TypesWithoutElementsAndResultsWithThem) {
  const float x[] = {-2, 0.25F, 7};
  const std::vector<std::pair<std::string, Literal>> bounds{{"min_val", -1.0}, {"max_val", 1.0}};
  for (const void* data : {static_cast<const void*>(nullptr), static_cast<const void*>(x)}) {
    const auto result = evaluate_call("tosaic.clamp.default", {{data, DType::f32, {3}}}, bounds);
    ASSERT_TRUE(result.ok()) << result.error().message;
    ASSERT_EQ(result->size(), 1u);
    EXPECT_EQ(result->front().dtype, DType::f32);
    EXPECT_EQ(result->front().sizes, std::vector<std::int64_t>{3});
    ASSERT_EQ(result->front().data.null(), data == nullptr);
    if (!data) continue;
    const auto* y = reinterpret_cast<const float*>(result->front().data.data());
    EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{-1, 0.25F, 1}));
  }
}

TEST(TosaCalls, WrongArguments) {
  const auto code = [](const char* op, const std::vector<InputTensor>& operands,
                       const std::vector<std::pair<std::string, Literal>>& arguments) {
    const auto result = evaluate_call(op, operands, arguments);
    return result.ok() ? std::string("fine") : result.error().code;
  };
  const InputTensor x{nullptr, DType::f32, {2, 3}}, whole{nullptr, DType::i32, {2, 3}};
  EXPECT_EQ(code("tosaic.clampp.default", {x}, {}), "aten.unknown-operator");
  EXPECT_EQ(code("tosaic.clamp.default", {x}, {{"lowest", 1.0}}), "call.argument");
  EXPECT_EQ(code("tosaic.cast.default", {x}, {{"result", std::int64_t{3}}}), "call.argument");
  EXPECT_EQ(code("tosaic.cast.default", {x}, {{"result", std::string("i64")}}), "tosa.cast.type");
  EXPECT_EQ(code("tosaic.clamp.default", {x}, {{"min_val", 0.0}}), "aten.missing-argument");
  EXPECT_EQ(code("tosaic.clamp.default", {x}, {{"min_val", std::string("a")}, {"max_val", 1.0}}), "aten.argument-type");
  EXPECT_EQ(code("tosaic.clamp.default", {}, {{"min_val", 0.0}, {"max_val", 1.0}}), "aten.missing-tensor");
  EXPECT_EQ(code("tosaic.clz.default", {x}, {}), "tosa.clz.type");
  EXPECT_EQ(code("tosaic.add.default", {x, whole}, {}), "tosa.add.type");
  EXPECT_EQ(code("tosaic.concat.default", {}, {{"axis", std::int64_t{0}}}), "aten.missing-tensor");
  EXPECT_EQ(code("tosaic.reshape.default", {x}, {{"shape", std::vector<std::int64_t>{7}}}),
            "tosa.reshape.element-count");
  EXPECT_EQ(code("tosaic.tile.integer", {whole}, {{"multiples", std::vector<std::int64_t>{1 << 30, 1 << 30}}}), "fine");
}

}  // namespace
}  // namespace tosaic
