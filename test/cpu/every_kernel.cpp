// SPDX-License-Identifier: Apache-2.0
// The table of kernels itself: each of its rows takes a graph that is made for it here, and computes what the
// interpreter does. A new row fails until its graph is added. Shapes at random are the other files' business.
#include <algorithm>
#include <map>

#include "cpu/channel_groups.h"
#include "cpu/matrix/tiles.h"
#include "cpu/net.h"
#include "cpu/step.h"
#include "ops/definitions/extension.h"

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

// What TOSA says for a norm of rows of eight, from `centred` on.
ValueId mean(Net& net, ValueId x) {
  const ValueId sum = net.node("reduce_sum", {x}, {{"axis", std::int64_t{1}}});
  return net.node("mul", {sum, net.constant(DType::f32, {1, 1}, 0.125, 0.125), net.zero(DType::i8)});
}
ValueId norm(Net& net, ValueId centred) {
  const ValueId variance = mean(net, net.node("mul", {centred, centred, net.zero(DType::i8)}));
  const ValueId root = net.node("rsqrt", {net.node("add", {variance, net.constant(DType::f32, {1, 1}, 1e-5, 1e-5)})});
  const ValueId weight = net.constant(DType::f32, {1, 8}, -1, 1);
  return net.node("mul", {net.node("mul", {centred, root, net.zero(DType::i8)}), weight, net.zero(DType::i8)});
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
    {"conv_lines_i8",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::i8, {1, 5, 9, 64}, -128, 127),
                          net.constant(DType::i8, {5, 2, 2, 64}, -128, 127), DType::i32);
     }},
    {"conv_i8",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::i8, {1, 4, 4, 3}, -128, 127),
                          net.constant(DType::i8, {5, 2, 2, 3}, -128, 127), DType::i32);
     }},
    {"groups",
     [](Net& net) {
       const ChannelGroups c{1, 6, 5, 4, 8, 8};
       return convolved_groups(net, c, image_of_groups(net, c, DType::i8),
                               [&](ValueId sums) { return net.rescale(sums, DType::i8, 38, 44, true); });
     }},
    {"conv_i16",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::i16, {1, 4, 4, 3}, -30000, 30000),
                          net.constant(DType::i8, {5, 2, 2, 3}, -128, 127), DType::i48);
     }},
    {"conv_lines",
     [](Net& net) {
       return convolution(net, "conv2d", net.input(DType::f32, {1, 6, 9, 3}, -1, 1),
                          net.constant(DType::f32, {5, 2, 2, 3}, -1, 1), DType::f32);
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
    {"attention",
     [](Net& net) {
       Node node{.op = extension::op::attention,
                 .inputs = {net.input(DType::f32, {2, 16, 5}, -1, 1), net.input(DType::f32, {2, 5, 4}, -1, 1),
                            net.input(DType::f32, {2, 4, 6}, -1, 1)}};
       node.attrs = {{extension::attention::scores, Ints{2, 16, 4}},
                     {extension::attention::biased, false},
                     {extension::attention::masked, false},
                     {extension::softmax::safe, false}};
       node.outputs = {net.graph.add_value("o", {DType::f32, {2, 16, 6}, {}})};
       net.graph.nodes.push_back(node);
       return node.outputs[0];
     }},
    {"matmul",
     [](Net& net) {
       return net.node("matmul",
                       {net.input(DType::f32, {2, 3, 5}, -1, 1), net.input(DType::f32, {2, 5, 4}, -1, 1),
                        net.zero(DType::f32), net.zero(DType::f32)},
                       {}, DType::f32);
     }},
    {"softmax",
     [](Net& net) {
       const ValueId x = net.input(DType::f32, {3, 8}, -1, 1);
       const ValueId top =
           net.node("reduce_max", {x}, {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}});
       const ValueId e = net.node("exp", {net.node("sub", {x, top})});
       const ValueId sum = net.node("reduce_sum", {e}, {{"axis", std::int64_t{1}}});
       return net.node("mul", {e, net.node("reciprocal", {sum}), net.zero(DType::i8)});
     }},
    {"layer_norm",
     [](Net& net) {
       const ValueId x = net.input(DType::f32, {3, 8}, -1, 1);
       return norm(net, net.node("sub", {x, mean(net, x)}));
     }},
    {"rms_norm",
     [](Net& net) {
       return norm(net, net.input(DType::f32, {3, 8}, -1, 1));
     }},
    {"quantise_rows",
     [](Net& net) {
       const TensorType each{DType::f32, {3, 1}, {}};
       Node node{.op = extension::op::quantise_rows, .inputs = {net.input(DType::f32, {3, 8}, -1, 1)}};
       node.attrs = {{extension::quantise_rows::least_scale, 0x1p-23}, {extension::quantise_rows::keeps_dim, true}};
       node.outputs = {net.graph.add_value("q", {DType::i8, {3, 8}, {}}), net.graph.add_value("scale", each),
                       net.graph.add_value("zero", each)};
       net.graph.nodes.push_back(node);
       return node.outputs[0];
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
    cpu::use_tiles(cpu::Tiles::plain_code);  // some kernels are for tiles alone
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
