// SPDX-License-Identifier: Apache-2.0
// The table of kernels itself: each of its rows takes a graph that is made for it here, and computes what the
// interpreter does. A new row fails until its graph is added. Shapes at random are the other files' business.
#include <algorithm>
#include <map>

#include "cpu/net.h"
#include "cpu/step.h"

namespace tosaic::test {
namespace {

using Ints = std::vector<std::int64_t>;

ValueId convolution(Net& net, const std::string& op, ValueId x, ValueId weight, DType sum) {
  const bool depthwise = op == "depthwise_conv2d";
  const Shape& shape = net.graph[weight].type.shape;
  const std::int64_t channels = depthwise ? shape.size(2) * shape.size(3) : shape.size(0);
  return net.node(op,
                  {x, weight, net.constant(sum, {channels}, -1, 1), net.zero(net.graph[x].type.dtype),
                   net.zero(net.graph[weight].type.dtype)},
                  {{"pad", Ints{0, 0, 0, 0}},
                   {"stride", Ints{1, 1}},
                   {"dilation", Ints{1, 1}},
                   {"acc_type", sum},
                   {"local_bound", false}},
                  sum);
}

// What is multiplied by a weight of 8 bits with a scale for each group of four.
ValueId quantised_table(Net& net, const Shape& shape) {
  const ValueId integers = net.node("cast", {net.constant(DType::i8, {6, 2, 4}, -128, 127)}, {}, DType::f32);
  const ValueId scaled =
      net.node("mul", {integers, net.constant(DType::f32, {6, 2, 1}, 0.01, 0.02), net.zero(DType::i8)});
  return net.node("reshape", {scaled, net.shape(shape.sizes())});
}

using Maker = ValueId (*)(Net& net);
const std::map<std::string_view, Maker> makers{
    {"view",
     [](Net& net) {
       return net.node("reshape", {net.input(DType::f32, {2, 6}, -1, 1), net.shape({3, 4})});
     }},
    {"coded",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::f32, {1, 1, 3, 8}, -1, 1), quantised_table(net, {6, 1, 1, 8}),
                          DType::f32);
     }},
    {"coded_rows",
     [](Net& net) {
       return net.node("gather", {quantised_table(net, {1, 6, 8}), net.input(DType::i32, {1, 3}, 0, 5)});
     }},
    {"unpacked",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::f32, {1, 1, 2, 512}, -1, 1),
                          net.constant(DType::f32, {512, 1, 1, 512}, -0.1, 0.1), DType::f32);
     }},
    {"conv_i8",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::i8, {1, 4, 4, 3}, -128, 127),
                          net.constant(DType::i8, {5, 2, 2, 3}, -128, 127), DType::i32);
     }},
    {"conv_i16",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::i16, {1, 4, 4, 3}, -30000, 30000),
                          net.constant(DType::i8, {5, 2, 2, 3}, -128, 127), DType::i48);
     }},
    {"conv_f32",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::f32, {1, 4, 4, 3}, -1, 1),
                          net.constant(DType::f32, {5, 2, 2, 3}, -1, 1), DType::f32);
     }},
    {"depthwise",
     [](Net& net) {
       return convolution(net, "depthwise_conv2d", net.input(DType::i8, {1, 4, 4, 3}, -128, 127),
                          net.constant(DType::i8, {2, 2, 3, 1}, -128, 127), DType::i32);
     }},
    {"matmul",
     [](Net& net) {
       return net.node("matmul",
                       {net.input(DType::f32, {2, 3, 5}, -1, 1), net.input(DType::f32, {2, 5, 4}, -1, 1),
                        net.zero(DType::f32), net.zero(DType::f32)},
                       {}, DType::f32);
     }},
    {"pool",
     [](Net& net) {
       return net.node("max_pool2d", {net.input(DType::i8, {1, 4, 4, 3}, -128, 127)},
                       {{"kernel", Ints{2, 2}},
                        {"stride", Ints{2, 2}},
                        {"pad", Ints{0, 0, 0, 0}},
                        {"nan_mode", std::string("propagate")}});
     }},
    {"reduction",
     [](Net& net) {
       return net.node("reduce_sum", {net.input(DType::f32, {3, 8}, -1, 1)}, {{"axis", std::int64_t{1}}});
     }},
    {"layout",
     [](Net& net) {
       return net.node("transpose", {net.input(DType::i8, {3, 4, 5}, -128, 127)},
                       {{"perms", std::vector<std::int64_t>{2, 0, 1}}});
     }},
    {"gather",
     [](Net& net) {
       return net.node("gather", {net.input(DType::f32, {1, 6, 8}, -1, 1), net.input(DType::i32, {1, 3}, 0, 5)});
     }},
    {"scatter",
     [](Net& net) {
       return net.node("scatter", {net.input(DType::f32, {1, 6, 8}, -1, 1),
                                   net.node("reshape", {net.numbers(DType::i32, {4, 0, 2}), net.shape({1, 3})}),
                                   net.input(DType::f32, {1, 3, 8}, -1, 1)});
     }},
    {"resize",
     [](Net& net) {
       return net.node("resize",
                       {net.input(DType::i8, {1, 3, 3, 2}, -128, 127), net.shape({2, 1, 2, 1}), net.shape({0, 0}),
                        net.shape({1, 1})},
                       {{"mode", std::string("nearest")}}, DType::i8);
     }},
    {"chain",
     [](Net& net) {
       return net.node("add", {net.input(DType::f32, {3, 8}, -1, 1), net.input(DType::f32, {3, 8}, -1, 1)});
     }},
    {"reference",
     [](Net& net) {
       return net.node("argmax", {net.input(DType::f32, {3, 8}, -1, 1)},
                       {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}});
     }},
};

TEST(KernelTable, EveryRowTakesAGraphAndComputesIt) {
  for (const cpu::KernelRow& row : cpu::kernel_rows()) {
    const auto maker = makers.find(row.name);
    ASSERT_NE(maker, makers.end()) << row.name << ": add a graph that this kernel takes";
    Net net;
    net.output(maker->second(net));
    const auto program = cpu::Program::compile(net.graph, {.threads = 1});
    ASSERT_TRUE(program.ok()) << row.name << ": " << program.error().message;
    const auto kernels = program->kernels();
    EXPECT_TRUE(std::ranges::any_of(kernels, [&](std::string_view used) { return used.starts_with(row.name); }))
        << row.name << " is not among the kernels of its graph:\n"
        << print(net.graph);
    expect_as_interpreted(net, {1e-5, 1e-4}, std::string(row.name));
  }
}

}  // namespace
}  // namespace tosaic::test
