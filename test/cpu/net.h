// SPDX-License-Identifier: Apache-2.0
// Small TOSA graphs for the executor's tests: built in a few words, filled with seeded random numbers, run on the
// CPU executor at every instruction set of this machine and compared with the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "cpu/cpu.h"
#include "interp/interp.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::test {

class Net {
 public:
  explicit Net(std::uint32_t seed = 1) : random(seed) {}
  Graph graph;
  std::mt19937 random;

  std::int64_t integer(std::int64_t lowest, std::int64_t highest) {
    return std::uniform_int_distribution<std::int64_t>(lowest, highest)(random);
  }
  double real(double lowest, double highest) { return std::uniform_real_distribution<double>(lowest, highest)(random); }

  // Random elements in [lowest, highest]; integers are whole.
  Bytes elements(const TensorType& type, double lowest, double highest) {
    std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
    for (double& v : values)
      v = is_float(type.dtype)
              ? real(lowest, highest)
              : static_cast<double>(integer(static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest)));
    return constant_bytes(type.dtype, std::span<const double>(values));
  }
  ValueId input(DType dtype, Shape shape, double lowest, double highest) {
    const ValueId v = graph.add_value("in" + std::to_string(graph.inputs.size()), TensorType{dtype, std::move(shape)});
    graph.inputs.push_back(v);
    inputs.push_back({graph[v].type, elements(graph[v].type, lowest, highest)});
    return v;
  }
  ValueId constant(DType dtype, Shape shape, double lowest, double highest) {
    TensorType type{dtype, std::move(shape)};
    Bytes data = elements(type, lowest, highest);
    return graph.add_value("c" + std::to_string(graph.values.size()), type, std::move(data));
  }
  ValueId numbers(DType dtype, const std::vector<std::int64_t>& values) {
    TensorType type{dtype, Shape{static_cast<std::int64_t>(values.size())}};
    Bytes data = constant_bytes(dtype, std::span<const std::int64_t>(values));
    return graph.add_value("c" + std::to_string(graph.values.size()), type, std::move(data));
  }
  ValueId zero(DType dtype) { return constant(dtype, Shape{1}, 0, 0); }
  ValueId shape(const std::vector<std::int64_t>& values) { return numbers(DType::shape, values); }

  // A node whose output type the operator's row infers, in `dtype` where the row cannot know it.
  ValueId node(const std::string& op, std::vector<ValueId> operands, Attrs attrs = {},
               std::optional<DType> dtype = std::nullopt) {
    Node n{.op = Operator("tosa." + op),
           .inputs = std::move(operands),
           .attrs = std::move(attrs),
           .outputs = {},
           .loc = {},
           .regions = {}};
    const tosa::Op* row = tosa::find(n.op);
    TensorType type = row->infer(tosa::View(graph, n)).front();
    if (dtype) type.dtype = *dtype;
    const ValueId v = graph.add_value("v" + std::to_string(graph.values.size()), type);
    n.outputs = {v};
    graph.nodes.push_back(std::move(n));
    return v;
  }
  void output(ValueId v) { graph.outputs.push_back(v); }

  // A convolution of 1 x 1 by a weight of [n, 1, 1, k], summed in f32; without a bias, one at random.
  ValueId conv2d(ValueId x, ValueId weight, ValueId bias) {
    using Sizes = std::vector<std::int64_t>;
    const DType type = graph[x].type.dtype;
    return node("conv2d", {x, weight, bias, zero(type), zero(type)},
                {{"pad", Sizes{0, 0, 0, 0}},
                 {"stride", Sizes{1, 1}},
                 {"dilation", Sizes{1, 1}},
                 {"acc_type", DType::f32},
                 {"local_bound", false}},
                type);
  }
  ValueId conv2d(ValueId x, ValueId weight) {
    return conv2d(x, weight, constant(DType::f32, {graph[weight].type.shape.size(0)}, -1, 1));
  }

  // RESCALE to `to` by about 2^-shift; per_channel scales every last-dim element by its own.
  ValueId rescale(ValueId x, DType to, int shift_lowest, int shift_highest, bool per_channel, std::int64_t input_zp = 0,
                  std::int64_t output_zp = 0, const std::string& rounding = "single_round") {
    const DType from = graph[x].type.dtype;
    const bool scale32 = from != DType::i48;
    const Shape& shape = graph[x].type.shape;
    const std::int64_t scales = per_channel ? shape.size(shape.rank() - 1) : 1;
    std::vector<std::int64_t> multiplier, shift;
    for (std::int64_t i = 0; i < scales; ++i) {
      multiplier.push_back(scale32 ? integer(1 << 30, 2147483647) : integer(1 << 14, 32767));
      shift.push_back(integer(shift_lowest, shift_highest));
    }
    return node("rescale",
                {x, numbers(scale32 ? DType::i32 : DType::i16, multiplier), numbers(DType::i8, shift),
                 numbers(from, {input_zp}), numbers(to, {output_zp})},
                {{"scale32", scale32},
                 {"rounding_mode", rounding},
                 {"per_channel", per_channel},
                 {"input_unsigned", false},
                 {"output_unsigned", false}});
  }

  std::vector<Tensor> inputs;
};

// How far floats may be apart: relative to the larger magnitude, and absolutely.
struct Tolerance {
  double relative = 0, absolute = 0;
};
void expect_same(const Tensor& got, const Tensor& wanted, const Tolerance& tolerance, const std::string& what);
// Runs the graph at each instruction set and with one and two threads, and compares with the interpreter.
// When `kernel` is given, every step must be that row's.
void expect_as_interpreted(const Net& net, const Tolerance& tolerance = {}, const std::string& what = {},
                           const std::string& kernel = {});
// The instruction sets that this machine can run; `use` makes one of them the one in use, 0 the best.
std::vector<std::int64_t> instruction_sets();
void use(std::int64_t instruction_set);

}  // namespace tosaic::test
