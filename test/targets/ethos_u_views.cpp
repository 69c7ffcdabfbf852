// SPDX-License-Identifier: Apache-2.0
// What Vela would merge wrongly through a view stands apart.
#include <gtest/gtest.h>

#include "ir/tosa_operators.h"
#include "targets/ethos_u/products.h"
#include "targets/same_results.h"

namespace tosaic {
namespace {

TEST(EthosU, an_activation_goes_before_a_view) {
  const std::string table = R"(graph @main(%x: 2x2x3x4xi8) -> (%y) {
    %m: 2x1x3x4xi8 = tosa.reduce_max(%x) {axis=1, nan_mode="propagate"}
    %s: 5xshape = constant [2, 1, 3, 2, 2]
    %v: 2x1x3x2x2xi8 = tosa.reshape(%m, %s)
    %y: 2x1x3x2x2xi8 = tosa.clamp(%v) {min_val=-5, max_val=7, nan_mode="propagate"}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_small_u55, ethos_u::shape_for_u85}) {
    auto graph = parse(table);
    ASSERT_TRUE(graph.ok());
    shape(*graph, {});
    for (const Node& node : graph->nodes)
      if (node.op == tosa::op::clamp) { EXPECT_EQ((*graph)[node.inputs[0]].type.shape.sizes(), (Ints{2, 3, 4})); }
    expect_same_results(table, shape, 4);
  }
}

TEST(EthosU, a_view_that_leaves_is_not_the_one_that_is_turned) {
  const std::string text = R"(graph @main(%x: 2x3x4xi8) -> (%v, %y) {
    %m: 2x3x4xi8 = tosa.clamp(%x) {min_val=-100, max_val=100, nan_mode="propagate"}
    %s: 4xshape = constant [1, 2, 3, 4]
    %v: 1x2x3x4xi8 = tosa.reshape(%m, %s)
    %y: 1x2x4x3xi8 = tosa.transpose(%v) {perms=[0, 1, 3, 2]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 4);
}

TEST(EthosU, a_minimum_is_a_maximum_on_u55) {
  const std::string text = R"(graph @main(%x: 1x2x3x4xi16) -> (%y) {
    %m: 1x2x1x4xi16 = tosa.reduce_min(%x) {axis=2, nan_mode="propagate"}
    %s: 2xshape = constant [2, 4]
    %y: 2x4xi16 = tosa.reshape(%m, %s)
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 10);
  expect_same_results(text, ethos_u::shape_for_u85, 2);
}

TEST(EthosU, chains_that_would_load_two_wide_tables_are_apart) {
  Ints entries(513);
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<std::int64_t>(i * i / 9);
  const auto list = [&] {
    std::string text;
    for (auto e : entries) text += (text.empty() ? "" : ", ") + std::to_string(e);
    return text;
  };
  const std::string first = list();
  entries[7] += 1;
  const std::string text = "graph @main(%x: 4x32xi16, %z: 4x32xi16) -> (%y) {\n  %ta: 513xi16 = constant [" + first +
                           "]\n  %tb: 513xi16 = constant [" + list() + R"(]
    %one: 1xi32 = constant [1073741824]
    %by7: 1xi8 = constant [37]
    %by0: 1xi8 = constant [30]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %a: 4x32xi32 = tosa.table(%x, %ta)
    %b: 4x32xi16 = tosa.rescale(%a, %one, %by7, %z32, %z16) )" +
                           rescaling + R"(
    %c: 4x32xi32 = tosa.rescale(%b, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %d: 4x32xi32 = tosa.rescale(%z, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %e: 4x32xi32 = tosa.mul(%c, %d, %z8)
    %f: 4x32xi16 = tosa.rescale(%e, %one, %by16, %z32, %z16) )" +
                           rescaling + R"(
    %g: 4x32xi32 = tosa.table(%f, %tb)
    %y: 4x32xi16 = tosa.rescale(%g, %one, %by7, %z32, %z16) )" +
                           rescaling + R"(
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 8);
  expect_same_results(text, ethos_u::shape_for_u85, 11);  // two views, and one back at the end
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok());
  ethos_u::shape_for_u85(*graph);
  for (const Node& node : graph->nodes)
    if (node.op == tosa::op::mul) { EXPECT_EQ((*graph)[node.outputs[0]].type.shape.sizes(), (Ints{4, 1, 32})); }
}

// An int16 sum with a RESCALE and a CLAMP, then a MUL with columns 3 and on of a wider tensor: `view` stands after the
// sum, `rank` and `dims` are what is computed in from there. `cut` makes the operand %p of the other input.
std::string a_sum_beside(const std::string& view, const std::string& summed, const std::string& z,
                         const std::string& dims, const std::string& cut) {
  return "graph @main(%x: 4x6x8xi16, %z: " + z + R"(xi16) -> (%y) {
    %one: 1xi32 = constant [1073741824]
    %by0: 1xi8 = constant [30]
    %by3: 1xi8 = constant [33]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %dims: )" +
         dims + R"(
    %w: 4x6x8xi32 = tosa.rescale(%x, %one, %by0, %z16, %z32) )" +
         rescaling + R"(
    %s: 4x1x8xi32 = tosa.reduce_sum(%w) {axis=1}
)" + view +
         "    %n: " + summed + "xi16 = tosa.rescale(" + (view.empty() ? "%s" : "%v") + ", %one, %by3, %z32, %z16) " +
         rescaling + "\n    %c: " + summed +
         "xi16 = tosa.clamp(%n) {min_val=0, max_val=32767, nan_mode=\"propagate\"}\n" + cut + "    %a: " + summed +
         "xi32 = tosa.rescale(%c, %one, %by0, %z16, %z32) " + rescaling + "\n    %b: " + summed +
         "xi32 = tosa.rescale(%p, %one, %by0, %z16, %z32) " + rescaling + "\n    %m: " + summed +
         "xi32 = tosa.mul(%a, %b, %z8)\n    %y: " + summed + "xi16 = tosa.rescale(%m, %one, %by16, %z32, %z16) " +
         rescaling + "\n  }";
}

Ints shape_of_the(const std::string& op, const std::string& text) {
  auto graph = parse(text);
  if (!graph.ok()) return {};
  ethos_u::shape_for_u85(*graph);
  for (const Node& node : graph->nodes)
    if (node.op.name() == op) return (*graph)[node.outputs[0]].type.shape.sizes();
  return {};
}

// Narrowed and activated as the sum is written, the command behind the view is in no chain with it.
TEST(EthosU, activations_behind_a_view_and_a_rescale_stand_before_both) {
  const std::string text =
      a_sum_beside("    %v: 4x8xi32 = tosa.reshape(%s, %dims)\n", "4x8", "4x12", "2xshape = constant [4, 8]",
                   "    %at: 2xshape = constant [0, 3]\n    %p: 4x8xi16 = tosa.slice(%z, %at, %dims)\n");
  expect_same_results(text, ethos_u::shape_for_u55, 10);
  expect_same_results(text, ethos_u::shape_for_u85, 10);
  EXPECT_EQ(shape_of_the("tosa.clamp", text), (Ints{4, 1, 8}));
  EXPECT_EQ(shape_of_the("tosa.mul", text), (Ints{4, 8}));
}

TEST(EthosU, parts_of_tensors_are_no_operands_in_a_chain_of_another_shape) {
  const std::string part =
      a_sum_beside("", "4x1x8", "4x1x12", "3xshape = constant [4, 1, 8]",
                   "    %at: 3xshape = constant [0, 0, 3]\n    %p: 4x1x8xi16 = tosa.slice(%z, %at, %dims)\n");
  expect_same_results(part, ethos_u::shape_for_u55, 9);
  expect_same_results(part, ethos_u::shape_for_u85, 12);  // two views, and one back
  EXPECT_EQ(shape_of_the("tosa.mul", part), (Ints{1, 4, 8}));
}

// The part is no longer one behind the view, but stored in the dims that the chain is computed in.
TEST(EthosU, views_of_what_is_stored_are_no_operands_in_a_chain_of_another_shape) {
  const std::string view =
      a_sum_beside("", "4x1x8", "4x8x2", "3xshape = constant [4, 1, 8]",
                   "    %at: 3xshape = constant [0, 0, 1]\n    %size: 3xshape = constant [4, 8, 1]\n"
                   "    %q: 4x8x1xi16 = tosa.slice(%z, %at, %size)\n    %p: 4x1x8xi16 = tosa.reshape(%q, %dims)\n");
  expect_same_results(view, ethos_u::shape_for_u55, 10);
  expect_same_results(view, ethos_u::shape_for_u85, 12);  // the view that there is becomes the one that is needed
  EXPECT_EQ(shape_of_the("tosa.mul", view), (Ints{1, 4, 8}));
}

// Nothing has other dims there: the part is read where it lies.
TEST(EthosU, parts_of_tensors_stay_in_a_chain_of_their_shape) {
  const std::string text = R"(graph @main(%x: 4x8xi16, %w: 4x8xi16, %z: 4x12xi16) -> (%y) {
    %one: 1xi32 = constant [1073741824]
    %by0: 1xi8 = constant [30]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %at: 2xshape = constant [0, 3]
    %dims: 2xshape = constant [4, 8]
    %a: 4x8xi32 = tosa.rescale(%x, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %b: 4x8xi32 = tosa.rescale(%w, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %m: 4x8xi32 = tosa.mul(%a, %b, %z8)
    %n: 4x8xi16 = tosa.rescale(%m, %one, %by16, %z32, %z16) )" +
                           rescaling + R"(
    %c: 4x8xi16 = tosa.clamp(%n) {min_val=0, max_val=32767, nan_mode="propagate"}
    %p: 4x8xi16 = tosa.slice(%z, %at, %dims)
    %d: 4x8xi32 = tosa.rescale(%c, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %e: 4x8xi32 = tosa.rescale(%p, %one, %by0, %z16, %z32) )" +
                           rescaling + R"(
    %y: 4x8xi32 = tosa.add(%d, %e)
  })";
  expect_same_results(text, ethos_u::shape_for_u85, 9);
}

}  // namespace
}  // namespace tosaic
