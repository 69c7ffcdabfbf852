// SPDX-License-Identifier: Apache-2.0
// Matrix products of random shapes, with epilogues, against the interpreter.
#include <fmt/format.h>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

struct Sizes {
  std::int64_t batch, h, c, w;
};
Sizes random_sizes(Net& net) {
  const std::int64_t some[] = {1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 64, 100};
  return {net.integer(1, 5), some[net.integer(0, 11)], some[net.integer(0, 11)], some[net.integer(0, 11)]};
}

TEST(Matmul, I8) {
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    Net net(seed);
    const Sizes s = random_sizes(net);
    const ValueId a = net.input(DType::i8, {s.batch, s.h, s.c}, -128, 127);
    const ValueId b = seed % 4 == 3 ? net.constant(DType::i8, {s.batch, s.c, s.w}, -128, 127)
                                    : net.input(DType::i8, {s.batch, s.c, s.w}, -128, 127);
    ValueId v = net.node("matmul",
                         {a, b, net.numbers(DType::i8, {seed % 2 ? net.integer(-128, 127) : 0}),
                          net.numbers(DType::i8, {seed % 3 ? net.integer(-128, 127) : 0})},
                         {}, DType::i32);
    if (seed % 5 == 1) v = net.rescale(v, DType::i8, 40, 44, false, 0, 9);
    if (seed % 5 == 2) v = net.rescale(v, DType::i8, 38, 44, true, 0, 9);
    if (seed % 5 == 3) v = net.rescale(v, DType::i16, 36, 40, false);
    net.output(v);
    expect_as_interpreted(net, {}, fmt::format("{} x {} x {} x {}", s.batch, s.h, s.c, s.w), "matmul_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

// A TRANSPOSE that nobody else reads is part of the product.
TEST(Matmul, OfTransposed) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Net net(seed);
    const Sizes s = random_sizes(net);
    const DType type = seed % 2 ? DType::f32 : DType::i8;
    const auto input = [&](const Shape& shape) {
      return net.input(type, shape, seed % 2 ? -1 : -128, seed % 2 ? 1 : 127);
    };
    const ValueId a = input({s.batch, s.h, s.c}), b = input({s.batch, s.w, s.c});
    const ValueId turned = net.node("transpose", {b}, {{"perms", std::vector<std::int64_t>{0, 2, 1}}});
    const ValueId zero = type == DType::f32 ? net.zero(type) : net.numbers(type, {net.integer(-128, 127)});
    ValueId v = net.node("matmul", {a, turned, zero, zero}, {}, type == DType::f32 ? DType::f32 : DType::i32);
    if (type == DType::f32 && seed % 3 == 1) v = net.node("add", {v, net.constant(DType::f32, {1, 1, s.w}, -1, 1)});
    if (type == DType::i8 && seed % 3 == 1) v = net.rescale(v, DType::i8, 40, 44, false, 0, 9);
    net.output(v);
    const bool alone = seed % 5 != 0;
    if (!alone) net.output(turned);
    expect_as_interpreted(net, {1e-5, 1e-5}, fmt::format("{} x {} x {} x {}", s.batch, s.h, s.c, s.w),
                          !alone               ? ""
                          : type == DType::f32 ? "matmul_f32"
                                               : "matmul_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Matmul, F32) {
  for (std::uint32_t seed = 500; seed < 560; ++seed) {
    Net net(seed);
    const Sizes s = random_sizes(net);
    const ValueId a = net.input(DType::f32, {s.batch, s.h, s.c}, -1, 1);
    const ValueId b = seed % 4 == 3 ? net.constant(DType::f32, {s.batch, s.c, s.w}, -1, 1)
                                    : net.input(DType::f32, {s.batch, s.c, s.w}, -1, 1);
    ValueId v = net.node("matmul", {a, b, net.zero(DType::f32), net.zero(DType::f32)}, {}, DType::f32);
    if (seed % 3 == 1) v = net.node("add", {v, net.constant(DType::f32, {1, 1, s.w}, -1, 1)});
    if (seed % 3 == 2) v = net.node("mul", {v, net.constant(DType::f32, {1, 1, 1}, 0.1, 0.2), net.zero(DType::i8)});
    net.output(v);
    expect_as_interpreted(net, {1e-5, 1e-5}, fmt::format("{} x {} x {} x {}", s.batch, s.h, s.c, s.w), "matmul_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// The softmax of attention: maximum, exponential, sum and quotient along the last dim.
TEST(Matmul, Attention) {
  Net net;
  const ValueId q = net.input(DType::f32, {4, 37, 16}, -1, 1), k = net.input(DType::f32, {4, 16, 37}, -1, 1);
  const ValueId v = net.input(DType::f32, {4, 37, 16}, -1, 1), z = net.zero(DType::f32);
  const ValueId scores = net.node("matmul", {q, k, z, z}, {}, DType::f32);
  const ValueId top =
      net.node("reduce_max", {scores}, {{"axis", std::int64_t{2}}, {"nan_mode", std::string("propagate")}});
  const ValueId e = net.node("exp", {net.node("sub", {scores, top})});
  const ValueId sum = net.node("reciprocal", {net.node("reduce_sum", {e}, {{"axis", std::int64_t{2}}})});
  const ValueId p = net.node("mul", {e, sum, net.zero(DType::i8)});
  net.output(net.node("matmul", {p, v, z, z}, {}, DType::f32));
  expect_as_interpreted(net, {1e-5, 1e-5});
}

}  // namespace
}  // namespace tosaic::test
