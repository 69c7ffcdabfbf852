// SPDX-License-Identifier: Apache-2.0
// Chains and reductions that go through their rows together, against the interpreter: what they keep for themselves,
// what others see of it, and what they must not be a group with.
#include "cpu/net.h"

namespace tosaic::test {
namespace {

ValueId reduced(Net& net, const char* op, ValueId x) {
  Attrs attrs{{"axis", std::int64_t{net.graph[x].type.shape.rank() - 1}}};
  if (std::string(op) == "reduce_max") attrs.set("nan_mode", std::string("propagate"));
  return net.node(op, {x}, attrs);
}

// What softmax of integers is made of.
struct Softmax {
  ValueId most, power, total, result;
  Softmax(Net& net, ValueId x) {
    most = reduced(net, "reduce_max", x);
    const ValueId less =
        net.node("sub", {net.rescale(x, DType::i32, 30, 32, false), net.rescale(most, DType::i32, 30, 32, false)});
    power = net.rescale(net.rescale(less, DType::i16, 32, 33, false), DType::i32, 30, 31, false);
    total = reduced(net, "reduce_sum", power);
    const ValueId part = net.rescale(total, DType::i16, 36, 38, false);
    const ValueId product = net.node("mul", {power, net.rescale(part, DType::i32, 31, 32, false), net.zero(DType::i8)});
    result = net.rescale(product, DType::i16, 38, 40, false);
  }
};

TEST(RowGroups, KeepWhatNobodyElseSees) {
  const Shape shapes[] = {{1, 3, 37, 45}, {200, 7}, {16, 2100}, {5, 401, 1}, {67, 16}, {33, 40000}};
  std::uint32_t seed = 0;
  for (const Shape& shape : shapes)
    for (DType type : {DType::i16, DType::i8}) {
      Net net(++seed);
      const double most = type == DType::i8 ? 127 : 32767;
      net.output(Softmax(net, net.input(type, shape, -most, most)).result);
      expect_as_interpreted(net, {}, "seed " + std::to_string(seed), "row_group");
    }
}

TEST(RowGroups, LeaveWhatOthersSee) {
  Net net(20);
  const Softmax first(net, net.input(DType::i16, {50, 3000}, -30000, 30000));
  const Softmax second(net, first.result);  // the same group
  net.output(first.total);
  net.output(second.result);
  net.output(net.node("reverse", {first.power}, {{"axis", std::int64_t{1}}}));
  expect_as_interpreted(net);
}

// Of floats each row is what it is without a group.
TEST(RowGroups, OfFloats) {
  Net net(21);
  const ValueId x = net.input(DType::f32, {40, 999}, -1, 1);
  const ValueId mean = net.node(
      "mul", {reduced(net, "reduce_sum", x), net.constant(DType::f32, {1, 1}, 0.001, 0.001), net.zero(DType::i8)});
  const ValueId centred = net.node("sub", {x, mean});
  const ValueId square = net.node("mul", {centred, centred, net.zero(DType::i8)});
  const ValueId scale = net.node("rsqrt", {reduced(net, "reduce_sum", square)});
  const ValueId normed = net.node("mul", {centred, scale, net.zero(DType::i8)});
  net.output(net.node("add", {normed, net.constant(DType::f32, {1, 999}, 0, 2)}));
  expect_as_interpreted(net, {1e-5, 1e-6}, "", "row_group");
}

// A row meets all rows' sums, through a view or as an operand that is repeated; rows of another number; few rows.
TEST(RowGroups, AreNotMadeOfWhatReadsOtherRows) {
  Net net(22);
  const ValueId x = net.input(DType::i32, {48, 48}, -1000, 1000);
  const ValueId sums = reduced(net, "reduce_sum", x);
  const ValueId across = net.node("reshape", {sums, net.shape({1, 48})});
  const ValueId y = net.node("add", {x, across});
  const ValueId z = net.node("sub", {y, reduced(net, "reduce_max", y)});
  const ValueId of_half = net.node("reshape", {z, net.shape({96, 24})});
  net.output(net.node("sub", {of_half, reduced(net, "reduce_max", of_half)}));
  const ValueId few = net.input(DType::i32, {3, 5000}, -1000, 1000);
  net.output(net.node("sub", {few, reduced(net, "reduce_max", few)}));
  expect_as_interpreted(net);
}

TEST(RowGroups, AreObserved) {
  Net net(23);
  const Softmax softmax(net, net.input(DType::i16, {64, 300}, -30000, 30000));
  net.output(softmax.result);
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok());
  auto program = cpu::Program::compile(net.graph, {.threads = 2, .observed = {softmax.power, softmax.total}});
  ASSERT_TRUE(program.ok());
  std::vector<ValueId> seen;
  const cpu::Observer observer = [&](ValueId v, const auto&, auto&) { seen.push_back(v); };
  const auto got = program->run(net.inputs, &observer);
  ASSERT_TRUE(got.ok());
  expect_same((*got)[0], (*wanted)[0], {}, "observed");
  EXPECT_EQ(seen.size(), 2u);
}

TEST(RowGroups, HaveViewsThatAreObserved) {
  Net net(24);
  const ValueId x = net.input(DType::i32, {32, 100}, -1000, 1000);
  const ValueId less = net.node("sub", {x, reduced(net, "reduce_max", x)});
  const ValueId view = net.node("reshape", {less, net.shape({3200})});
  const ValueId result = net.node("sub", {less, reduced(net, "reduce_sum", less)});
  net.output(result);
  auto program = cpu::Program::compile(net.graph, {.threads = 1, .observed = {view}});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(std::ranges::count(program->kernels(), "row_group"), 1);
  Tensor seen{net.graph[view].type, {}};
  const cpu::Observer observer = [&](ValueId, const TensorView& content, auto&) {
    seen.data = Bytes::copy(content.data, seen.type.storage_bytes());
  };
  const auto got = program->run(net.inputs, &observer);
  ASSERT_TRUE(got.ok());
  net.output(view);
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok());
  expect_same((*got)[0], (*wanted)[0], {}, "result");
  expect_same(seen, (*wanted)[1], {}, "view");
}

}  // namespace
}  // namespace tosaic::test
