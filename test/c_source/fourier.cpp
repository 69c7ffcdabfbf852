// SPDX-License-Identifier: Apache-2.0
// FFT2D and RFFT2D, which no graph of the CPU executor's tests has.
#include "cpu/net.h"

namespace tosaic::test {
namespace {

// Elements from -1 to 1: the interpreter sums in double, and here the rounding of each of log2(n) turns counts.
constexpr Tolerance tolerance{1e-6, 1e-5};

ValueId part(Net& net, const char* name, const Shape& shape) {
  const ValueId v = net.graph.add_value(name, TensorType{DType::f32, shape});
  net.output(v);
  return v;
}

class Fourier : public testing::TestWithParam<Shape> {};

TEST_P(Fourier, OfComplexPlanes) {
  for (const bool inverse : {false, true}) {
    Net net;
    const ValueId re = net.input(DType::f32, GetParam(), -1, 1), im = net.input(DType::f32, GetParam(), -1, 1);
    net.graph.nodes.push_back({.op = Operator("tosa.fft2d"),
                               .inputs = {re, im},
                               .attrs = {{"inverse", inverse}, {"local_bound", false}},
                               .outputs = {part(net, "r", GetParam()), part(net, "i", GetParam())},
                               .loc = {},
                               .regions = {}});
    expect_as_interpreted(net, tolerance, to_string(GetParam()) + (inverse ? " inverse" : ""));
  }
}

TEST_P(Fourier, OfRealPlanes) {
  Net net;
  const ValueId re = net.input(DType::f32, GetParam(), -1, 1);
  const Shape half{GetParam().size(0), GetParam().size(1), GetParam().size(2) / 2 + 1};
  net.graph.nodes.push_back({.op = Operator("tosa.rfft2d"),
                             .inputs = {re},
                             .attrs = {{"local_bound", false}},
                             .outputs = {part(net, "r", half), part(net, "i", half)},
                             .loc = {},
                             .regions = {}});
  expect_as_interpreted(net, tolerance, to_string(GetParam()));
}

// A plane that is one operand twice.
TEST(FourierOf, OneTensor) {
  Net net;
  const Shape shape{1, 4, 8};
  const ValueId x = net.input(DType::f32, shape, -1, 1);
  net.graph.nodes.push_back({.op = Operator("tosa.fft2d"),
                             .inputs = {x, x},
                             .attrs = {{"inverse", false}, {"local_bound", false}},
                             .outputs = {part(net, "r", shape), part(net, "i", shape)},
                             .loc = {},
                             .regions = {}});
  expect_as_interpreted(net, tolerance, "one tensor");
}

INSTANTIATE_TEST_SUITE_P(Sizes, Fourier,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 1, 2}, Shape{3, 2, 1}, Shape{2, 8, 16},
                                         Shape{1, 32, 4}, Shape{1, 1, 256}));

}  // namespace
}  // namespace tosaic::test
