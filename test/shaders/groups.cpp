// SPDX-License-Identifier: Apache-2.0
// What the invocations of a work group do together: products, long sums, and what is asked of their shaders before a
// driver sees them.
#include "formats/spirv/compute/check_shader.h"
#include "shaders/kernel.h"
#include "shaders/on_device.h"
#include "vulkan/compute_model.h"

namespace tosaic::test {
namespace {

using shaders::Kind;
using shaders::Opcode;
using shaders::Shader;
using shaders::Value;

// What the check says of a shader whose groups have 64 invocations and share 32 vectors.
std::string checked(const std::function<void(Shader& s, const shaders::Shared& memory)>& body) {
  Shader s;
  const shaders::Buffer buffer = s.buffer(DType::i32, true);
  const Value local = s.local();
  s.group();
  s.push(0);
  body(s, s.shared(Kind::integer, 32));
  s.store(buffer, local, local);
  const auto words = s.finish();
  const auto result = spirv::check_shader(words);
  if (!result.ok()) return result.error().message.substr(result.error().message.find(": ") + 2);
  EXPECT_EQ(result->shared_bytes, 512u);
  return "accepted";
}

TEST(GroupShaders, BarriersThatSomeDoNotReachAreRefused) {
  const std::string maybe = "a barrier that some invocations may not reach";
  EXPECT_EQ(checked([](Shader& s, auto&) { s.barrier(); }), "accepted");
  EXPECT_EQ(checked([](Shader& s, auto&) { s.when(s.local() < 3, [&] { s.barrier(); }); }), maybe);
  EXPECT_EQ(checked([](Shader& s, auto&) { s.when(s.group() < 3, [&] { s.barrier(); }); }), "accepted");
  EXPECT_EQ(checked([](Shader& s, auto&) {
              s.when(s.local() < 3, [&] { s.leave(); });
              s.barrier();
            }),
            "a barrier that some invocations do not reach");
  const auto loop = [](Value (*end)(Shader&)) {
    return checked([&](Shader& s, auto&) { s.loop(s.integer(0), end(s), s.integer(1), [&](Value) { s.barrier(); }); });
  };
  EXPECT_EQ(loop([](Shader& s) { return s.push(1) * s.group() + 7; }), "accepted");
  EXPECT_EQ(loop([](Shader& s) { return s.local() + s.push(1); }), maybe);
  EXPECT_EQ(loop([](Shader& s) { return s.invocation(); }), maybe);
  // What only some have stored is not the same for all.
  EXPECT_EQ(loop([](Shader& s) {
              const auto v = s.variable(s.integer(3));
              s.when(s.local() < 3, [&] { v.set(s.integer(4)); });
              return v.get();
            }),
            maybe);
  EXPECT_EQ(loop([](Shader& s) {
              const auto v = s.variable(s.integer(3));
              s.loop(s.integer(0), s.local(), s.integer(1), [&](Value) { v.set(v.get() + 1); });
              return v.get();
            }),
            maybe);
  EXPECT_EQ(checked([](Shader& s, const shaders::Shared& memory) {
              s.when(s.load(memory, s.integer(0), s.integer(0)) == 0, [&] { s.barrier(); });
            }),
            maybe);
}

TEST(GroupShaders, OnlyArithmeticOfRealsIsExact) {
  EXPECT_EQ(checked([](Shader& s, auto&) { s.exactly(s.binary(Opcode::f_add, s.real(1), s.real(2), Kind::real)); }),
            "accepted");
  const std::string other = "something else than arithmetic of reals that must be exact";
  EXPECT_EQ(checked([](Shader& s, auto&) { s.exactly(s.local() + 1); }), other);
  EXPECT_EQ(checked([](Shader& s, auto&) { s.exactly(s.real(1)); }), other);
}

TEST(GroupShaders, IndicesOfSharedMemoryThatMayLieOutsideAreRefused) {
  const auto index = [](Value (*at)(Shader&)) {
    return checked([&](Shader& s, const shaders::Shared& memory) { s.load(memory, at(s)); });
  };
  const std::string outside = "an index into shared memory that may lie outside";
  EXPECT_EQ(index([](Shader& s) { return s.integer(31); }), "accepted");
  EXPECT_EQ(index([](Shader& s) { return s.integer(32); }), outside);
  EXPECT_EQ(index([](Shader& s) { return s.integer(-1); }), outside);
  EXPECT_EQ(index([](Shader& s) { return s.local(); }), outside);  // 64 of them
  EXPECT_EQ(index([](Shader& s) { return s.local() / s.integer(2); }), "accepted");
  EXPECT_EQ(index([](Shader& s) { return s.local() / s.integer(2) + 1; }), outside);
  EXPECT_EQ(index([](Shader& s) { return s.local() % s.integer(16) * 2 + 1; }), "accepted");
  EXPECT_EQ(index([](Shader& s) { return s.push(0); }), outside);
  EXPECT_EQ(index([](Shader& s) { return s.push(0) % s.integer(32); }), "accepted");
  EXPECT_EQ(index([](Shader& s) { return (s.push(0) & 15) + s.integer(0x7ffffff0) * 2; }), outside);  // wraps around
  EXPECT_EQ(index([](Shader& s) { return s.push(0) / s.push(0); }), outside);
  EXPECT_EQ(index([](Shader& s) { return s.group() - s.group(); }), outside);
  const auto part = [](std::int64_t number) {
    return checked([&](Shader& s, const shaders::Shared& memory) { s.load(memory, s.integer(0), s.integer(number)); });
  };
  EXPECT_EQ(part(3), "accepted");
  EXPECT_EQ(part(4), outside);
}

ValueId convolution(Net& net, DType type, Shape in, Shape weight, std::vector<std::int64_t> pad = {0, 0, 0, 0},
                    std::vector<std::int64_t> stride = {1, 1}) {
  const bool real = is_float(type);
  const DType sums = real ? type : DType::i32;
  const double range = real ? 1 : 127;
  const std::int64_t channels = weight.size(0);
  const ValueId x = net.input(type, std::move(in), -range, range);
  const ValueId w = net.constant(type, std::move(weight), -range, range);
  const ValueId b = net.constant(sums, {channels}, real ? -1 : -9000, real ? 1 : 9000);
  return net.node("conv2d", {x, w, b, net.numbers(type, {real ? 0 : 5}), net.numbers(type, {0})},
                  {{"pad", std::move(pad)},
                   {"stride", std::move(stride)},
                   {"dilation", std::vector<std::int64_t>{1, 1}},
                   {"acc_type", real ? DType::f32 : DType::i32},
                   {"local_bound", false}});
}

// Deeper and wider than a tile, with a rest in each direction.
TEST(Groups, Products) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  struct Size {
    std::int64_t images, height, width, in, out;
  };
  for (const DType type : {DType::f32, DType::i8, DType::f16})
    for (const Size& c : {Size{1, 7, 7, 160, 49}, Size{3, 5, 17, 17, 24}, Size{1, 1, 1, 321, 1000},
                          Size{2, 1, 2, 64, 3}, Size{1, 24, 49, 24, 65}, Size{1, 1, 17, 1, 1}}) {
      Net net(3);
      ValueId v = convolution(net, type, {c.images, c.height, c.width, c.in}, {c.out, 1, 1, c.in});
      if (type == DType::i8) v = net.rescale(v, DType::i8, 38, 40, true, 0, 5);
      net.output(v);
      const double loose = type == DType::f16 ? 2e-2 : 1e-4;
      expect_on_device(net, {loose, loose},
                       fmt::format("{} {}x{}x{} {} to {}", name_of(type), c.images, c.height, c.width, c.in, c.out));
    }
}

TEST(Groups, WindowsOfManyChannels) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  for (const DType type : {DType::f32, DType::i8}) {
    Net net(4);
    const ValueId a = convolution(net, type, {2, 9, 14, 36}, {40, 3, 3, 36}, {1, 1, 1, 1}, {2, 1});
    net.output(type == DType::i8 ? net.rescale(a, DType::i8, 39, 41, true, 0, 5) : a);
    const ValueId b = convolution(net, type, {1, 23, 23, 3}, {64, 7, 7, 3}, {3, 3, 3, 3}, {2, 2});
    net.output(type == DType::i8 ? net.rescale(b, DType::i8, 38, 40, true, 0, 5) : b);
    expect_on_device(net, {1e-4, 1e-4}, std::string(name_of(type)));
  }
}

TEST(Groups, BatchesOfProducts) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  struct Size {
    std::int64_t batches, rows, depth, columns;
  };
  for (const Size& c : {Size{3, 49, 64, 49}, Size{2, 17, 577, 24}, Size{5, 1, 24, 3}, Size{1, 130, 3, 66}}) {
    Net net(5);
    const ValueId a = net.input(DType::f32, {c.batches, c.rows, c.depth}, -1, 1),
                  b = net.input(DType::f32, {c.batches, c.depth, c.columns}, -1, 1);
    net.output(net.node("matmul", {a, b, net.zero(DType::f32), net.zero(DType::f32)}, {}, DType::f32));
    expect_on_device(net, {1e-4, 1e-4}, fmt::format("{}x {}x{}x{}", c.batches, c.rows, c.depth, c.columns));
  }
}

TEST(Groups, LongLines) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  for (const std::string op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_product"})
    for (const auto& [shape, axis] : {std::pair{Shape{3, 577}, 1},
                                      {Shape{2, 49, 17}, 1},
                                      {Shape{130, 3}, 0},
                                      {Shape{70, 16}, 1},
                                      {Shape{2, 1000, 1}, 1}})
      for (const DType type : {DType::f32, DType::i32}) {
        if (type == DType::i32 && op == "reduce_product") continue;
        Net net(6);
        const bool product = op == "reduce_product";
        const ValueId x = net.input(type, shape,
                                    product              ? 0.99
                                    : type == DType::f32 ? -1
                                                         : -5000,
                                    product              ? 1.01
                                    : type == DType::f32 ? 1
                                                         : 5000);
        Attrs attrs{{"axis", std::int64_t{axis}}};
        if (op == "reduce_max" || op == "reduce_min") attrs.set("nan_mode", std::string("propagate"));
        net.output(net.node(op, {x}, std::move(attrs)));
        expect_on_device(net, {1e-4, 1e-4}, op + " " + to_string(shape));
      }
}

TEST(Groups, MeansOfImages) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  for (const DType type : {DType::f32, DType::i8})
    for (const std::int64_t channels : {1, 24, 33}) {
      Net net(7);
      const bool real = is_float(type);
      const ValueId x = net.input(type, {2, 7, 9, channels}, real ? -1 : -128, real ? 1 : 127);
      net.output(net.node("avg_pool2d", {x, net.numbers(type, {real ? 0 : 7}), net.numbers(type, {real ? 0 : -3})},
                          {{"kernel", std::vector<std::int64_t>{7, 9}},
                           {"stride", std::vector<std::int64_t>{1, 1}},
                           {"pad", std::vector<std::int64_t>{0, 0, 0, 0}},
                           {"acc_type", real ? DType::f32 : DType::i32}}));
      expect_on_device(net, {1e-5, 1e-5}, fmt::format("{} {}", name_of(type), channels));
    }
}

// Every kind of kernel, with values in 16 bits between them; views and moves of what stays in 32.
TEST(HalfPrecision, AreHowValuesAreKept) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  Net net(9);
  ValueId v = convolution(net, DType::f32, {2, 9, 13, 3}, {16, 3, 3, 3}, {1, 1, 1, 1}, {2, 2});
  const ValueId w = net.constant(DType::f32, {3, 3, 16, 1}, -1, 1), zero = net.zero(DType::f32);
  v = net.node("depthwise_conv2d", {v, w, net.constant(DType::f32, {16}, -1, 1), zero, zero},
               {{"pad", std::vector<std::int64_t>{1, 1, 1, 1}},
                {"stride", std::vector<std::int64_t>{1, 1}},
                {"dilation", std::vector<std::int64_t>{1, 1}},
                {"acc_type", DType::f32},
                {"local_bound", false}});
  v = net.node("sigmoid", {v});
  const ValueId turned = net.node("transpose", {v}, {{"perms", std::vector<std::int64_t>{0, 3, 1, 2}}});
  const ValueId a = net.node("reshape", {turned, net.shape({2, 16, 35})});
  const ValueId b = net.input(DType::f32, {1, 70, 9}, -1, 1);
  const ValueId c = net.node("reshape", {b, net.shape({2, 35, 9})});
  const ValueId product = net.node("matmul", {a, c, zero, zero}, {}, DType::f32);
  const ValueId sum = net.node("reduce_sum", {net.node("abs", {a})}, {{"axis", std::int64_t{2}}});
  const ValueId together = net.node("concat", {product, sum}, {{"axis", std::int64_t{2}}});
  net.output(net.node("tanh", {together}));
  net.output(net.node("reshape", {a, net.shape({16, 70})}));
  net.output(net.node("concat", {c, c}, {{"axis", std::int64_t{0}}}));
  expect_on_device(net, {4e-3, 4e-3}, "half precision", shaders::Precision::fp16);
  // What is between dispatches has half the size.
  const auto bytes = [&](shaders::Precision p) {
    return compiled(net.graph, every_tier(), p).tiers[0].activation_bytes;
  };
  EXPECT_LT(bytes(shaders::Precision::fp16), bytes(shaders::Precision::fp32));
}

// Many elements: an invocation has several, and there is a rest.
TEST(Groups, ManyElements) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  Net net(8);
  const ValueId x = net.input(DType::f32, {83, 29, 31}, -1, 1), y = net.input(DType::f32, {1, 29, 1}, -1, 1);
  net.output(net.node("add", {x, y}));
  net.output(net.node("transpose", {x}, {{"perms", std::vector<std::int64_t>{2, 0, 1}}}));
  expect_on_device(net);
}

}  // namespace
}  // namespace tosaic::test
