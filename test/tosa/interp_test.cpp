// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

Tensor tensor(DType dtype, Shape shape, Doubles values) {
  return {{dtype, std::move(shape), std::nullopt}, constant_bytes(dtype, values)};
}

// y = exp(x + c), returned together with x + c.
Graph exp_of_sum(DType dtype) {
  Graph g;
  const TensorType type{dtype, {2}, std::nullopt};
  const ValueId x = g.add_value("x", type), c = g.add_value("c", type, constant_bytes(dtype, Doubles{1, 2}));
  const ValueId sum = g.add_value("sum", type), y = g.add_value("y", type);
  g.nodes.push_back({tosa::op::add, {x, c}, {}, {sum}, nullptr, {}});
  g.nodes.push_back({tosa::op::exp, {sum}, {}, {y}, nullptr, {}});
  g.inputs = {x};
  g.outputs = {y, sum};
  return g;
}

TEST(Interp, RunsNodesInOrderAndKeepsOutputs) {
  auto result = interp::run(exp_of_sum(f32), {tensor(f32, {2}, {-1, -1})});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ((*result)[0].type.dtype, f32);
  EXPECT_EQ((*result)[0].data.as<float>()[0], 1.0f);
  EXPECT_EQ((*result)[0].data.as<float>()[1], static_cast<float>(std::exp(1.0)));
  EXPECT_EQ((*result)[1].data.as<float>()[1], 1.0f);
}

TEST(Interp, PreciseModeIsDoubleFromEndToEnd) {
  for (const Tensor& x : {tensor(bf16, {2}, {0.1, 0.2}), tensor(f64, {2}, {0.1, 0.2})}) {
    auto result = interp::run(exp_of_sum(bf16), {x}, {.precise = true});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ((*result)[0].type.dtype, f64);
    const double x0 = element_as_double(x.type.dtype, x.data.data(), 0);
    EXPECT_EQ((*result)[0].data.as<double>()[0], std::exp(x0 + 1));
  }
}

TEST(Interp, InputsAndConstantsMayBeOutputs) {
  Graph g;
  const TensorType type{i32, {1}, std::nullopt};
  const ValueId x = g.add_value("x", type), c = g.add_value("c", type, constant_bytes(i32, Doubles{7}));
  g.inputs = {x};
  g.outputs = {c, x, x};
  auto result = interp::run(g, {tensor(i32, {1}, {5})});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)[0].data.as<std::int32_t>()[0], 7);
  EXPECT_EQ((*result)[2].data.as<std::int32_t>()[0], 5);
}

TEST(Interp, RefusesInputsThatDoNotFit) {
  const Graph g = exp_of_sum(f32);
  EXPECT_EQ(interp::run(g, {}).error().code, "run.input-count");
  EXPECT_EQ(interp::run(g, {tensor(f16, {2}, {1, 1})}).error().code, "run.input-type");
  EXPECT_EQ(interp::run(g, {tensor(f64, {2}, {1, 1})}).error().code, "run.input-type");  // only precise mode takes f64
  EXPECT_EQ(interp::run(g, {tensor(f32, {3}, {1, 1, 1})}).error().code, "run.input-type");
  EXPECT_EQ(interp::run(g, {{{f32, {2}, std::nullopt}, constant_bytes(f32, Doubles{1})}}).error().code,
            "run.input-type");
  EXPECT_EQ(interp::run(g, {{{f32, {2}, std::nullopt}, {}}}).error().code, "run.input-type");
}

TEST(Interp, RefusesOperatorsThatAreNotTosa) {
  Graph g = exp_of_sum(f32);
  g.nodes[1].op = aten::op::exp;
  EXPECT_EQ(interp::run(g, {tensor(f32, {2}, {1, 1})}).error().code, "run.unknown-operator");
}

TEST(Interp, LocatesWhatIsUnpredictable) {
  Graph g = OneNode{"add", {in(i32, {1}), in(i32, {1})}}.graph();
  auto loc = std::make_shared<Loc>();
  loc->place = {"model.py", 12, ""};
  g.nodes[0].loc = loc;
  auto result = interp::run(g, {tensor(i32, {1}, {2147483647}), tensor(i32, {1}, {1})});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "tosa.unpredictable");
  EXPECT_EQ(result.error().place.line, 12);
}

}  // namespace
}  // namespace tosaic
