// SPDX-License-Identifier: Apache-2.0
// What the draft of TOSA 1.1 adds: as it stands, and in the operators of 1.0. Against Arm's model:
// test/conformance/draft.py.
#include "formats/tosa/tosa_file.h"
#include "ops/definitions/extension.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
using tosa::Feature;
using tosa::Spec;

std::vector<double> doubles(const Tensor& tensor) {
  std::vector<double> list(static_cast<std::size_t>(tensor.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = element_as_double(tensor.type.dtype, tensor.data.data(), i);
  return list;
}

// The first result of the node. In TOSA 1.0, and from a .tosa file, it is the same.
std::vector<double> result(const OneNode& node) {
  EXPECT_EQ(node.verify(), "");
  const auto direct = node.run();
  if (!direct.ok()) return ADD_FAILURE() << direct.error().message, std::vector<double>{};
  const Graph graph = node.graph();
  const std::optional<Graph> older = extension::in_tosa_1_0(graph);
  std::vector<Tensor> inputs;
  for (const Operand& operand : node.operands)
    if (!operand.constant) inputs.push_back({operand.type, constant_bytes(operand.type.dtype, operand.values)});
  if (older) {
    for (const Node& n : older->nodes) EXPECT_FALSE(tosa::find(n.op)->newer) << n.op.name();
    const auto made = interp::run(*older, inputs);
    if (!made.ok()) return ADD_FAILURE() << made.error().message, std::vector<double>{};
    EXPECT_EQ(doubles((*made)[0]), doubles((*direct)[0]));
  }
  const auto file = tosa_file::write(graph);
  if (!file.ok()) return ADD_FAILURE() << file.error().message, std::vector<double>{};
  EXPECT_EQ(tosa_file::version_of(file->joined()), "1.1.0 (draft)");
  const auto again = tosa_file::read(file->joined(), "again.tosa");
  if (!again.ok()) return ADD_FAILURE() << again.error().message, std::vector<double>{};
  if (!again->nodes.empty()) {
    const auto made = interp::run(*again, inputs);
    if (!made.ok()) return ADD_FAILURE() << made.error().message, std::vector<double>{};
    EXPECT_EQ(doubles((*made)[0]), doubles((*direct)[0]));
  }
  return doubles((*direct)[0]);
}

OneNode rows(DType dtype, DType index, std::vector<double> indices, double count) {
  return {"row_gather",
          {in(dtype, {1, 4, 2}, {1, 0, 1, 1, 0, 0, 0, 1}), in(index, {1, 2}, std::move(indices)),
           constant(i32, {1}, {count})},
          {},
          {{dtype, {1, static_cast<std::int64_t>(2 * std::max(count, 1.0)), 2}, std::nullopt}}};
}

TEST(Newer, IsRefusedWhereTheTargetIs10) {
  EXPECT_EQ(rows(i8, i32, {0, 2}, 2).message({Feature::pro_int}),
            "row_gather is an operator of TOSA 1.1; the target is TOSA-1.0+INT");
  EXPECT_EQ(rows(i8, i32, {0, 2}, 2).verify({Feature::pro_int, Feature::v1_1}), "");
  EXPECT_EQ((OneNode{"abs", {in(i64, {1})}}).message({Feature::pro_int}),
            "abs of i64 is for targets with EXT-INT64; this one is TOSA-1.0+INT");
  const OneNode booleans{"gather", {in(boolean, {1, 2, 1}), in(i32, {1, 2})}};
  EXPECT_EQ(booleans.message({Feature::pro_int}),
            "gather of bool is for targets with PRO-INT or PRO-FP and TOSA-1.1; this one is TOSA-1.0+INT");
  EXPECT_EQ(booleans.verify({Feature::pro_int, Feature::v1_1}), "");
}

TEST(Newer, SpecsNameTheVersion) {
  const Spec spec = *Spec::parse("TOSA-1.1+INT+int64");
  EXPECT_TRUE(spec.has(Feature::v1_1) && spec.has(Feature::int64));
  EXPECT_EQ(spec.text(), "TOSA-1.1+INT+int64");
  EXPECT_EQ(Spec::parse("TOSA-1.0+INT+int64").error().message, "EXT-INT64 extends TOSA-1.1, which is not named");
  EXPECT_FALSE(Spec::parse("TOSA-1.0+INT+").ok());
  EXPECT_FALSE(Spec::parse("TOSA-1.2+INT").ok());
}

TEST(Newer, RowGather) {
  for (const DType dtype : {i8, boolean, f32, i64})
    for (const DType index : {i32, i64})
      EXPECT_EQ(result(rows(dtype, index, {0, 2}, 2)), (std::vector<double>{1, 0, 1, 1, 0, 0, 0, 1}));
  EXPECT_EQ(result(rows(f16, i32, {3, 1}, 1)), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(rows(i8, i32, {0, 2}, 0).verify(), "row_gather.row-count");
  EXPECT_EQ(rows(i8, i32, {0, 2}, 5).verify(), "row_gather.row-count");
  OneNode batches = rows(i8, i32, {0, 2}, 2);
  batches.operands[1] = in(i32, {2, 2});
  EXPECT_EQ(batches.verify(), "row_gather.batch");
  for (const double wrong : {-1.0, 3.0, 4294967296.0}) {  // 2^32 is 0 in 32 bits
    const auto ran = rows(i8, i64, {0, wrong}, 2).run();
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.error().code, "tosa.unpredictable");
    const Graph older = *extension::in_tosa_1_0(rows(i8, i64, {0, wrong}, 2).graph());
    const auto also = interp::run(older, {{{i8, {1, 4, 2}, {}}, constant_bytes(i8, std::vector<double>(8))},
                                          {{i64, {1, 2}, {}}, constant_bytes(i64, std::vector<double>{0, wrong})}});
    EXPECT_FALSE(also.ok()) << wrong;
  }
}

TEST(Newer, MatmulTransposes) {
  const auto product = [](DType a, DType b, DType out, std::int64_t matrices) {
    std::vector<double> right{1, 2, 3, 4, 5, 6};
    if (matrices == 2) right.insert(right.end(), {6, 5, 4, 3, 2, 1});
    const DType za = a, zb = b;
    return OneNode{"matmul_t",
                   {in(a, {2, 1, 3}, {1, 2, 3, -1, 0, 2}), in(b, {matrices, 2, 3}, right), constant(za, {1}, {0}),
                    constant(zb, {1}, {0})},
                   {},
                   {{out, {2, 1, 2}, std::nullopt}}};
  };
  EXPECT_EQ(result(product(i8, i8, i32, 1)), (std::vector<double>{14, 32, 5, 8}));
  EXPECT_EQ(result(product(i8, i8, i32, 2)), (std::vector<double>{14, 32, 2, -1}));
  EXPECT_EQ(result(product(f32, f32, f32, 1)), (std::vector<double>{14, 32, 5, 8}));
  EXPECT_EQ(result(product(f16, bf16, f32, 1)), (std::vector<double>{14, 32, 5, 8}));
  EXPECT_EQ(result(product(f8e4m3, f8e5m2, bf16, 2)).size(), 4u);
  EXPECT_EQ(product(i8, i16, i32, 1).verify(), "matmul_t.type");
  EXPECT_EQ(product(f32, f32, f16, 1).verify(), "matmul_t.type");
  OneNode three = product(i8, i8, i32, 1);
  three.operands[0] = in(i8, {3, 1, 3});
  three.operands[1] = in(i8, {2, 2, 3});
  EXPECT_EQ(three.verify(), "matmul_t.batch");
  three.operands[1] = in(i8, {3, 2, 4});
  EXPECT_EQ(three.verify(), "matmul_t.inner-size");
}

TEST(Newer, AdaptivePools) {
  const auto pool = [](std::string op, std::vector<double> kernel) {
    OneNode node{std::move(op), {in(f32, {1, 2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8})}};
    if (node.op.starts_with("avg")) {
      node.attrs = {{"acc_type", f32}};
      node.operands.insert(node.operands.end(), 2, constant(f32, {1}, {0}));
    } else {
      node.attrs = {{"nan_mode", std::string("propagate")}};
    }
    node.operands.insert(node.operands.end(), {dims(std::move(kernel)), dims({2, 2}), dims({0, 0, 0, 0})});
    return node;
  };
  EXPECT_EQ(result(pool("avg_pool2d_adaptive", {2, 2})), (std::vector<double>{3.5, 5.5}));
  EXPECT_EQ(result(pool("max_pool2d_adaptive", {2, 2})), (std::vector<double>{6, 8}));
  EXPECT_EQ(pool("max_pool2d_adaptive", {2, 0}).verify(), "max_pool2d_adaptive.kernel");
  EXPECT_EQ(pool("max_pool2d_adaptive", {2, 3}).verify(), "max_pool2d_adaptive.output-size");
  EXPECT_EQ(pool("max_pool2d_adaptive", {2}).verify(), "max_pool2d_adaptive.kernel-length");
}

// What operators on shapes compute is a constant once the file is read.
TEST(Newer, ShapesAreKnown) {
  const auto binary = [](std::string op, std::vector<double> a, std::vector<double> b) {
    return OneNode{std::move(op), {dims(std::move(a)), dims(std::move(b))}};
  };
  const auto unary = [](std::string op, std::vector<double> a) { return OneNode{std::move(op), {dims(std::move(a))}}; };
  using List = std::vector<double>;
  EXPECT_EQ(result(binary("add_shape", {2, 3}, {4, 5})), (List{6, 8}));
  EXPECT_EQ(result(binary("sub_shape", {6, 3}, {4, 3})), (List{2, 0}));
  EXPECT_EQ(result(binary("mul_shape", {6, 3}, {4, 3})), (List{24, 9}));
  EXPECT_EQ(result(binary("max_shape", {6, 3}, {4, 5})), (List{6, 5}));
  EXPECT_EQ(result(binary("min_shape", {6, 3}, {4, 5})), (List{4, 3}));
  EXPECT_EQ(result(binary("mod_shape", {6, 3}, {4, 5})), (List{2, 3}));
  EXPECT_EQ(result(binary("div_ceil_shape", {6, 10}, {4, 5})), (List{2, 2}));
  EXPECT_EQ(result(binary("div_floor_shape", {6, 9}, {4, 5})), (List{1, 1}));
  EXPECT_EQ(result(unary("exp2_shape", {0, 5})), (List{1, 32}));
  EXPECT_EQ(result(unary("log2_ceil_shape", {1, 5})), (List{0, 3}));
  EXPECT_EQ(result(unary("log2_floor_shape", {1, 5})), (List{0, 2}));
  EXPECT_EQ(result(binary("concat_shape", {6, 3}, {4})), (List{6, 3, 4}));
  EXPECT_EQ(result({"slice_shape", {dims({6, 3, 4}), constant(i32, {1}, {1}), constant(i32, {1}, {2})}}), (List{3, 4}));
  EXPECT_EQ(result({"dim", {in(f32, {2, 3, 1}, List(6))}, {{"axis", std::int64_t{1}}}}), (List{3}));
  EXPECT_EQ(binary("add_shape", {2, 3}, {4}).verify(), "add_shape.length");
  EXPECT_EQ(binary("assert_equal_shape", {2, 3}, {4}).verify(), "assert_equal_shape.attributes");
  const auto slice = [](double start, double size) {
    return OneNode{"slice_shape",
                   {dims({6, 3, 4}), constant(i32, {1}, {start}), constant(i32, {1}, {size})},
                   {},
                   {{shape, {2}, {}}}}
        .verify();
  };
  EXPECT_EQ(slice(-1, 2), "slice_shape.start");
  EXPECT_EQ(slice(1, 0), "slice_shape.size");
  EXPECT_EQ(slice(2, 2), "slice_shape.range");
  EXPECT_EQ((OneNode{"concat_shape", {}, {}, {{shape, {1}, {}}}}.verify()), "concat_shape.operands");
  EXPECT_EQ(binary("concat_shape", {2}, {}).verify(), "concat_shape.empty");
  for (const OneNode& wrong : {binary("div_floor_shape", {6}, {0}), unary("log2_floor_shape", {0}),
                               unary("exp2_shape", {63}), binary("mul_shape", {4611686018427387904}, {4})}) {
    const auto ran = wrong.run();
    ASSERT_FALSE(ran.ok()) << wrong.op;
    EXPECT_EQ(ran.error().code, "tosa.unpredictable");
    EXPECT_EQ(tosa_file::read(tosa_file::write(wrong.graph())->joined(), "a.tosa").error().code, "tosa.unpredictable");
  }
}

TEST(Newer, AssertedShapesAreLookedAt) {
  const auto read = [](std::vector<double> a, std::vector<double> b, bool broadcast) {
    OneNode node{"assert_equal_shape", {dims(std::move(a)), dims(std::move(b))}, {{"allow_broadcast", broadcast}}};
    Graph graph = node.graph();
    graph.inputs.push_back(graph.add_value("x", {f32, {1}, {}}));
    graph.outputs.push_back(graph.add_value("y", {f32, {1}, {}}));
    graph.nodes.push_back({tosa::op::identity, {graph.inputs[0]}, {}, {graph.outputs[0]}, nullptr, {}});
    const auto file = tosa_file::read(tosa_file::write(graph)->joined(), "a.tosa");
    return file.ok() ? "" : file.error().message;
  };
  EXPECT_EQ(read({2, 3}, {2, 3}, false), "");
  EXPECT_EQ(read({2, 1}, {2, 3}, true), "");
  EXPECT_NE(read({2, 1}, {2, 3}, false).find("size 1 is 1 and 3"), std::string::npos);
  EXPECT_EQ((OneNode{"assert_equal_shape", {dims({1}), dims({1, 2})}, {{"allow_broadcast", true}}}.verify()),
            "assert_equal_shape.length");
  EXPECT_NE(read({2, 2}, {2, 3}, true).find("size 1 is 2 and 3"), std::string::npos);
}

TEST(Newer, IntegersOf64Bits) {
  const double big = 4503599627370496;  // 2^52
  EXPECT_EQ(result({"add", {in(i64, {2}, {big, -1}), in(i64, {1}, {big})}}), (std::vector<double>{2 * big, big - 1}));
  EXPECT_EQ(result({"clz", {in(i64, {3}, {1, 0, -1})}}), (std::vector<double>{63, 64, 0}));
  EXPECT_EQ(result({"argmax",
                    {in(f32, {1, 3}, {1, 5, 2})},
                    {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}},
                    {{i64, {1}, std::nullopt}}}),
            (std::vector<double>{1}));
  EXPECT_EQ(result({"cast", {in(i64, {2}, {big, -3})}, {}, {{f32, {2}, std::nullopt}}}),
            (std::vector<double>{big, -3}));
}

}  // namespace
}  // namespace tosaic
