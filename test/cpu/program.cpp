// SPDX-License-Identifier: Apache-2.0
// What cpu::Program promises whatever kernels run: memory, observers, refusals.
#include "cpu/net.h"

#include "ir/aten_operators.h"

#include <cstring>

namespace tosaic::test {
namespace {

TEST(Program, ViewsAndSharedOutputs) {
  Net net;
  const ValueId x = net.input(DType::f32, {2, 6}, -1, 1);
  const ValueId y = net.node("abs", {x});
  const ValueId seen = net.node("reshape", {y, net.shape({3, 4})});
  const ValueId of_input = net.node("reshape", {x, net.shape({12})});
  const ValueId z = net.node("add", {seen, seen});
  for (ValueId v : {seen, z, y, seen, of_input, x}) net.output(v);
  net.output(net.constant(DType::i32, {3}, -9, 9));
  expect_as_interpreted(net);
}

TEST(Program, ObservedValuesAreReportedOnceAndAreRight) {
  Net net;
  const ValueId x = net.input(DType::f32, {1000}, -1, 1);
  const ValueId a = net.node("abs", {x});
  const ValueId b = net.node("exp", {a});
  const ValueId c = net.node("add", {b, x});
  net.output(c);
  auto program = cpu::Program::compile(net.graph, {.threads = 2, .observed = {x, a, b}});
  ASSERT_TRUE(program.ok());
  std::vector<ValueId> order;
  const cpu::Observer observer = [&](ValueId v, const TensorView& content, ThreadPool&) {
    order.push_back(v);
    const float in = net.inputs[0].data.as<float>()[7], got = content.as<float>()[7];
    EXPECT_NEAR(got, v == x ? in : v == a ? std::fabs(in) : std::exp(std::fabs(in)), 1e-6);
  };
  ASSERT_TRUE(program->run(net.inputs, &observer).ok());
  EXPECT_EQ(order, (std::vector<ValueId>{x, a, b}));
}

TEST(Program, BufferThatIsReadAndWrittenInPlace) {
  Net net;
  const ValueId x = net.input(DType::i32, {100}, -50, 50);
  const ValueId doubled = net.node("add", {x, x});
  const ValueId reversed = net.node("reverse", {x}, {{"axis", std::int64_t{0}}});
  net.output(doubled);
  net.output(reversed);
  auto program = cpu::Program::compile(net.graph, {.threads = 1});
  ASSERT_TRUE(program.ok());
  std::vector<std::int32_t> state(100), other(100);
  for (int i = 0; i < 100; ++i) state[static_cast<std::size_t>(i)] = i;
  const void* in[] = {state.data()};
  void* out[] = {state.data(), other.data()};
  ASSERT_TRUE(program->run(in, out).ok());
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(state[i], static_cast<std::int32_t>(2 * i));
    EXPECT_EQ(other[i], static_cast<std::int32_t>(99 - i));
  }
}

// The epilogue of a convolution comes upon a RESCALE of what no operator with operands has made.
TEST(Program, ConvolutionsAreAddedToVariables) {
  const auto graph = parse(R"(graph @main(%x: 1x1x2x1xi8) -> (%y) {
    %zero8: 1xi8 = constant [0]
    %zero32: 1xi32 = constant [0]
    %start: 1x1x2x1xi8 = constant [4, -6]
    tosa.variable(%start) {name="v", var_shape=[1, 1, 2, 1], type=i8}
    %weight: 1x1x1x1xi8 = constant [3]
    %sums: 1x1x2x1xi32 = tosa.conv2d(%x, %weight, %zero32, %zero8, %zero8) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    %one: 1xi32 = constant [1073741824]
    %shift: 1xi8 = constant [30]
    %state: 1x1x2x1xi8 = tosa.variable_read() {name="v"}
    %wide: 1x1x2x1xi32 = tosa.rescale(%state, %one, %shift, %zero8, %zero32) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %sum: 1x1x2x1xi32 = tosa.add(%sums, %wide)
    %y: 1x1x2x1xi8 = tosa.rescale(%sum, %one, %shift, %zero32, %zero8) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
  })");
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  auto program = cpu::Program::compile(*graph);
  ASSERT_TRUE(program.ok());
  const auto result = program->run({{{DType::i8, Shape{1, 1, 2, 1}, {}}, Bytes::of(std::vector<std::int8_t>{5, 7})}});
  ASSERT_TRUE(result.ok()) << render(result.error(), false);
  EXPECT_EQ((*result)[0].data.as<std::int8_t>()[0], 19);
  EXPECT_EQ((*result)[0].data.as<std::int8_t>()[1], 15);
}

TEST(Program, VariablesKeepTheirContentAndAreSharedWithRegions) {
  const auto graph = parse(R"(graph @main(%x: 2xf32, %p: bool) -> (%after, %inside) {
    %start: 2xf32 = constant [1.5, 2.0]
    tosa.variable(%start) {name="v", var_shape=[2], type=f32}
    %before: 2xf32 = tosa.variable_read() {name="v"}
    %sum: 2xf32 = tosa.add(%before, %x)
    tosa.variable_write(%sum) {name="v"}
    %inside: 2xf32 = tosa.cond_if(%p) (
      graph @t() -> (%y) {
        %y: 2xf32 = tosa.variable_read() {name="v"}
        %c: 2xf32 = constant [7, 8]
        tosa.variable_write(%c) {name="v"}
      }
      graph @e() -> (%y) {
        %y: 2xf32 = tosa.variable_read() {name="v"}
      }
    )
    %after: 2xf32 = tosa.variable_read() {name="v"}
  })");
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  auto program = cpu::Program::compile(*graph, {.threads = 2});
  ASSERT_TRUE(program.ok());
  const std::vector<Tensor> inputs = {{{DType::f32, Shape{2}, {}}, Bytes::of(std::vector<float>{10, 20})},
                                      {{DType::boolean, Shape{}, {}}, Bytes::of(std::vector<std::uint8_t>{1})}};
  tosa::Variables variables;
  const auto expect = [&](Result<std::vector<Tensor>> result, float inside) {
    ASSERT_TRUE(result.ok()) << render(result.error(), false);
    EXPECT_EQ((*result)[0].data.as<float>()[0], 7.0f);
    EXPECT_EQ((*result)[1].data.as<float>()[1], inside);
  };
  for (const float inside : {22.0f, 28.0f, 28.0f}) {  // 2 + 20, then 8 + 20
    expect(program->run(inputs), inside);
    expect(interp::run(*graph, inputs, {.variables = &variables}), inside);
  }
  auto clone = program->clone();
  ASSERT_TRUE(clone.ok());
  expect(clone->run(inputs), 22.0f);
  expect(clone->run(inputs), 28.0f);
  expect(program->run(inputs), 28.0f);
  program->reset();
  expect(program->run(inputs), 22.0f);
  expect(interp::run(*graph, inputs), 22.0f);
}

TEST(Program, ClonesShareWhatNeverChanges) {
  Net net;
  ValueId x = net.input(DType::f32, {1, 64, 64}, -1, 1);
  for (int i = 0; i < 4; ++i) x = net.node("reverse", {x}, {{"axis", std::int64_t{1}}});
  net.output(x);
  std::size_t taken = 0;
  const MemorySource counted = [&](std::size_t bytes) {
    taken += bytes;
    return zeroed_memory(bytes);
  };
  std::optional<cpu::Program> clone;
  {
    auto program = cpu::Program::compile(net.graph, {.threads = 1, .timed = true});
    ASSERT_TRUE(program.ok());
    auto made = program->clone(counted);
    ASSERT_TRUE(made.ok());
    clone = std::move(*made);
    EXPECT_GE(taken, program->arena_bytes());
    EXPECT_EQ(clone->kernels(), program->kernels());
  }  // the clone outlives it
  const auto result = clone->run(net.inputs);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(std::memcmp((*result)[0].data.data(), net.inputs[0].data.data(), 64 * 64 * 4), 0);
  EXPECT_EQ(clone->step_times().size(), clone->kernels().size());
  clone->measure(false);
  ASSERT_TRUE(clone->run(net.inputs).ok());
  EXPECT_TRUE(clone->step_times().empty());
}

TEST(Program, MisalignedPointers) {
  Net net;
  const ValueId x = net.input(DType::f32, {33}, -1, 1);
  net.output(net.node("abs", {x}));
  auto program = cpu::Program::compile(net.graph);
  ASSERT_TRUE(program.ok());
  std::vector<std::byte> in(33 * 4 + 1), out(33 * 4 + 3, std::byte{0x5a});
  std::memcpy(in.data() + 1, net.inputs[0].data.data(), 33 * 4);
  const void* inputs[] = {in.data() + 1};
  void* outputs[] = {out.data() + 1};
  ASSERT_TRUE(program->run(inputs, outputs).ok());
  for (std::size_t i = 0; i < 33; ++i) {
    float got;
    std::memcpy(&got, out.data() + 1 + i * 4, 4);
    EXPECT_EQ(got, std::fabs(net.inputs[0].data.as<float>()[i]));
  }
  EXPECT_EQ(out.front(), std::byte{0x5a});
  EXPECT_EQ(out.back(), std::byte{0x5a});
}

TEST(Program, RefusesWrongInputs) {
  Net net;
  net.output(net.node("abs", {net.input(DType::f32, {4}, -1, 1)}));
  auto program = cpu::Program::compile(net.graph);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->run(std::vector<Tensor>{}).error().code, "run.input-count");
  Tensor wrong{TensorType{DType::f32, Shape{5}}, Bytes::of(std::vector<float>(5))};
  EXPECT_EQ(program->run({wrong}).error().code, "run.input-type");
  wrong = {TensorType{DType::f32, Shape{4}}, Bytes::of(std::vector<float>(3))};
  EXPECT_EQ(program->run({wrong}).error().code, "run.input-type");
  EXPECT_EQ(program->run(std::span<const void* const>{}, std::span<void* const>{}).error().code, "run.input-count");
}

TEST(Program, RefusesUnknownOperators) {
  Graph graph;
  const ValueId x = graph.add_value("x", TensorType{DType::f32, Shape{1}});
  const ValueId y = graph.add_value("y", TensorType{DType::f32, Shape{1}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes.push_back({.op = aten::op::relu, .inputs = {x}, .attrs = {}, .outputs = {y}, .loc = {}, .regions = {}});
  const auto program = cpu::Program::compile(graph);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, "cpu.unsupported");
}

TEST(Program, ArenaReusesMemory) {
  Net net;
  ValueId x = net.input(DType::f32, {1, 64, 64}, -1, 1);
  for (int i = 0; i < 10; ++i) x = net.node("reverse", {x}, {{"axis", std::int64_t{1}}});
  net.output(x);
  auto program = cpu::Program::compile(net.graph, {.threads = 1});
  ASSERT_TRUE(program.ok());
  EXPECT_LE(program->arena_bytes(), 2u * 64 * 64 * 4 + 4096);
  expect_as_interpreted(net);
}

}  // namespace
}  // namespace tosaic::test
