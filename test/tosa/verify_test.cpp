// SPDX-License-Identifier: Apache-2.0
// The rules that hold for every operator, and their messages.
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
using tosa::Feature;
using tosa::Spec;

OneNode add(DType dtype, Shape a, Shape b) { return {"add", {in(dtype, std::move(a)), in(dtype, std::move(b))}}; }

TEST(Verify, UnknownOperator) { EXPECT_EQ((OneNode{"fully_connected", {in(i8, {1})}}).verify(), "unknown-operator"); }

TEST(Verify, NumberOfOperands) {
  EXPECT_EQ((OneNode{"add", {in(i32, {1})}, {}, {{i32, {1}, {}}}}).message(), "add has 1 inputs, TOSA wants 2");
  EXPECT_EQ((OneNode{"abs", {in(i32, {1})}, {}, {{i32, {1}, {}}, {i32, {1}, {}}}}).verify(), "abs.operands");
  Graph g = add(i32, {1}, {1}).graph();
  g.nodes[0].inputs[1] = no_value;
  EXPECT_EQ(tosa::verify_node(tosa::View(g, g.nodes[0]), Spec::everything())->label, "add.operands");
}

TEST(Verify, Attributes) {
  const auto label = [](Attrs attrs) {
    return OneNode{"maximum", {in(i32, {1}), in(i32, {1})}, std::move(attrs), {{i32, {1}, {}}}}.verify();
  };
  EXPECT_EQ(label({{"nan_mode", std::string("ignore")}}), "");
  EXPECT_EQ(label({}), "maximum.attributes");
  EXPECT_EQ(label({{"nan_mode", std::string("IGNORE")}}), "maximum.attributes");
  EXPECT_EQ(label({{"nan_mode", std::int64_t{1}}}), "maximum.attributes");
  EXPECT_EQ(label({{"nan_mode", std::string("ignore")}, {"axis", std::int64_t{1}}}), "maximum.attributes");
  OneNode reduce{"reduce_sum", {in(i32, {1})}, {{"axis", std::int64_t{1} << 40}}, {{i32, {1}, {}}}};
  EXPECT_EQ(reduce.message(), "attribute axis of reduce_sum must be an i32");
}

TEST(Verify, RankAndDims) {
  EXPECT_EQ((OneNode{"reverse", {in(i8, {})}, {{"axis", std::int64_t{0}}}}).message(),
            "input1 of reverse has rank 0, TOSA wants at least 1");
  EXPECT_EQ(add(i32, {2, 0}, {2, 1}).verify(), "add.dimension");
  EXPECT_EQ(add(i32, {std::int64_t{1} << 40, std::int64_t{1} << 40}, {1, 1}).verify(), "add.dimension");
}

TEST(Verify, TypesNameTheFeatureThatWouldAdmitThem) {
  EXPECT_EQ(add(f32, {1}, {1}).verify({Feature::pro_fp}), "");
  EXPECT_EQ(add(f32, {1}, {1}).message({Feature::pro_int}),
            "add of f32 is for targets with PRO-FP; this one is TOSA-1.0+INT");
  EXPECT_EQ(add(bf16, {1}, {1}).message({Feature::pro_fp}),
            "add of bf16 is for targets with EXT-BF16; this one is TOSA-1.0+FP");
  EXPECT_EQ(add(i32, {1}, {1}).verify({Feature::pro_fp}), "");
  EXPECT_EQ((OneNode{"erf", {in(i8, {1})}}).message({Feature::pro_int}),
            "input of erf is i8; the target, TOSA-1.0+INT, has no erf, others have it for f16 with PRO-FP, f32 with "
            "PRO-FP or bf16 with EXT-BF16");
  EXPECT_EQ((OneNode{"add", {in(f32, {1}), in(f16, {1})}}).message({Feature::pro_fp}),
            "input2 of add is f16 next to input1 f32; the target, TOSA-1.0+FP, takes f32");
}

TEST(Verify, EveryTypeRowAdmitsItselfAndNothingBelowIt) {
  // For elementwise operators every row can be tried: with its features it passes, without them it is refused.
  for (const tosa::Op& op : tosa::all()) {
    if (op.inputs.size() > 2 || op.attrs.size() > 0 || op.types.empty()) continue;
    bool plain = true;
    for (const auto& operand : op.inputs)
      plain = plain && operand.max_rank == 64 && operand.type != "shape" && !operand.list;
    if (!plain || op.name == "identity") continue;
    for (const tosa::TypeRow& row : op.types) {
      const auto dtype = [&](std::string_view variable) {
        for (const auto& [name, d] : row.types)
          if (name == variable) return d;
        return *dtype_named(variable);
      };
      OneNode node{std::string(op.name), {}};
      for (const auto& operand : op.inputs) node.operands.push_back(in(dtype(operand.type), {1}));
      node.outputs = {{dtype(op.outputs[0].type), {1}, std::nullopt}};
      for (Feature feature : row.needs) {
        Spec enough{feature};
        if (row.and_needs) enough.add(*row.and_needs);
        EXPECT_EQ(node.verify(enough), "") << op.name;
      }
      Spec rest;
      for (int f = 0; f <= static_cast<int>(Feature::dynamic); ++f)
        if (std::find(row.needs.begin(), row.needs.end(), static_cast<Feature>(f)) == row.needs.end())
          rest.add(static_cast<Feature>(f));
      EXPECT_EQ(node.verify(rest), std::string(op.name) + ".type");
    }
  }
}

TEST(Verify, BroadcastRules) {
  EXPECT_EQ(add(i32, {2, 3}, {3}).verify(), "add.rank-mismatch");
  EXPECT_EQ(add(i32, {2, 3}, {2, 4}).message(), "shapes [2x3] and [2x4] of add do not broadcast: dim 1 is 3 and 4");
  EXPECT_EQ(add(i32, {2, 3}, {2, 4}).verify(), "add.broadcast");
  EXPECT_EQ((OneNode{"add", {in(i32, {2}), in(i32, {1})}, {}, {{i32, {1}, {}}}}).message(),
            "output 0 of add has shape [1], its operands imply [2]");
}

TEST(Verify, Constants) {
  OneNode node{"mul", {in(i32, {1}), in(i32, {1}), in(i8, {1})}};
  EXPECT_EQ(node.message({Feature::pro_int}), "shift of mul must be a compile-time constant without EXT-DYNAMIC");
  EXPECT_EQ(node.verify({Feature::pro_int, Feature::dynamic}), "");
  node.operands[2] = constant(i8, {1}, {0, 0});
  EXPECT_EQ(node.verify({Feature::pro_int}), "mul.constant");
}

TEST(Verify, Levels) {
  const Spec none{Feature::pro_int}, limited({Feature::pro_int}, tosa::level_8k);
  EXPECT_EQ(add(i32, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}).verify(none), "");
  EXPECT_EQ(add(i32, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}).verify(limited), "add.level-rank");
  EXPECT_EQ(add(i32, {1 << 29}, {1}).verify(none), "");
  EXPECT_EQ(add(i32, {1 << 29}, {1}).verify(limited), "add.level-size");
  EXPECT_EQ(add(i32, {(1 << 29) - 1}, {1}).verify(limited), "");
  OneNode concat{"concat", std::vector<Operand>(65, in(i8, {1})), {{"axis", std::int64_t{0}}}};
  EXPECT_EQ(concat.verify(none), "");
  EXPECT_EQ(concat.verify(limited), "concat.level-list");
}

TEST(Verify, TheFirstRuleThatFailsIsReported) {
  // Wrong dtype and wrong shapes: types come before ERROR_IFs, and ranks before types.
  EXPECT_EQ(add(i8, {2}, {3}).verify(), "add.type");
  EXPECT_EQ(add(i8, {0}, {3}).verify(), "add.dimension");
}

TEST(VerifyGraph, LocatesTheNode) {
  Graph g = add(i8, {1}, {1}).graph();
  auto loc = std::make_shared<Loc>();
  loc->place = {"model.py", 6, "y = a + b"};
  loc->module_path = "self.act";
  g.nodes[0].loc = loc;
  const Status status = tosa::verify_graph(g, Spec::everything());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "tosa.add.type");
  EXPECT_EQ(status.error().place.line, 6);
  EXPECT_EQ(status.error().context, "in module self.act");
}

TEST(VerifyGraph, ShapesStayInside) {
  Graph g;
  g.inputs = {g.add_value("s", {shape, {2}, std::nullopt})};
  EXPECT_EQ(tosa::verify_graph(g, Spec::everything()).error().code, "tosa.graph.shape-input");
}

}  // namespace
}  // namespace tosaic
