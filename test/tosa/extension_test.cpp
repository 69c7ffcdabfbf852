// SPDX-License-Identifier: Apache-2.0
// Rows of extension operators, and that files for other tools hold TOSA's operators only.
#include "ops/definitions/extension.h"

#include <functional>

#include "formats/spirv/graph/graph_module.h"
#include "formats/tosa/tosa_file.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

// 2 rows of 4 elements by 3 rows of two groups.
Graph product() {
  Graph g;
  const auto constant = [&](std::string name, DType type, Shape shape, Doubles values) {
    const TensorType of{type, std::move(shape), {}};
    return g.add_value(std::move(name), of, constant_bytes(type, values));
  };
  const ValueId x = g.add_value("x", {f32, {2, 4}, {}}), y = g.add_value("y", {f32, {2, 3}, {}});
  const ValueId values = constant("values", i8, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4}),
                bias = constant("bias", f32, {3}, {1, 2, 3}),
                scales = constant("scales", f32, {3, 2}, {1, 2, 0.5, 1, 2, 0.25});
  g.nodes.push_back({extension::op::scaled_product,
                     {x, values, bias, scales},
                     {{extension::quantised::run, std::int64_t{0}}, {extension::quantised::by_columns, false}},
                     {y},
                     nullptr,
                     {}});
  g.inputs = {x};
  g.outputs = {y};
  return g;
}

std::string broken(const std::function<void(Graph& graph, Node& node)>& change) {
  Graph g = product();
  change(g, g.nodes[0]);
  const auto violation = extension::verify_node(tosa::View(g, g.nodes[0]));
  return violation ? violation->label : "";
}

TEST(Extension, IsHeldToItsRow) {
  EXPECT_EQ(broken([](Graph&, Node&) {}), "");
  EXPECT_EQ(broken([](Graph&, Node& n) { n.inputs.pop_back(); }), "scaled_product.operands");
  EXPECT_EQ(broken([](Graph& g, Node& n) { g[n.inputs[1]].constant = {}; }), "scaled_product.constant");
  EXPECT_EQ(broken([](Graph& g, Node& n) { g[n.inputs[0]].type.dtype = i32; }), "scaled_product.type");
  EXPECT_EQ(broken([](Graph& g, Node& n) { g[n.inputs[0]].type.shape = {2, 5}; }), "scaled_product.output-shape");
  EXPECT_EQ(broken([](Graph&, Node& n) { n.attrs.set("run", std::int64_t{5}); }), "scaled_product.run");
  EXPECT_EQ(broken([](Graph& g, Node& n) {
              n.inputs.push_back(g.add_value("s", {f32, {2, 1}, {}}));
            }),
            "scaled_product.row-scales");
}

// y = x * (values * scales)^T + bias, written out.
TEST(Extension, ComputesWhatItsDefinitionSays) {
  const auto got = interp::run(product(), {{{f32, {2, 4}, {}}, constant_bytes(f32, Doubles{1, 1, 1, 1, 1, 0, 0, 2})}});
  ASSERT_TRUE(got.ok()) << got.error().message;
  const auto y = (*got)[0].data.as<float>();
  EXPECT_EQ(std::vector(y.begin(), y.end()),
            (std::vector<float>{1 + 3 + 14, 2 + 5.5f + 15, 3 - 6 - 1.75f, 1 + 1 + 16, 2 + 2.5f + 16, 3 - 2 - 2}));
}

TEST(Extension, IsInNoFile) {
  const Graph graph = product();
  EXPECT_FALSE(tosa::verify_graph(graph, tosa::Spec::everything()).ok());
  EXPECT_FALSE(tosa_file::write(graph).ok());
  EXPECT_FALSE(spirv::write_graph(graph, "main").ok());
  const auto in_tosa = extension::in_tosa(graph);
  ASSERT_TRUE(in_tosa);
  EXPECT_FALSE(extension::in_tosa(*in_tosa));
  const Status right = tosa::verify_graph(*in_tosa, tosa::Spec::everything());
  EXPECT_TRUE(right.ok()) << right.error().message;
  EXPECT_TRUE(tosa_file::write(*in_tosa).ok());
}

}  // namespace
}  // namespace tosaic
