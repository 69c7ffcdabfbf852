// SPDX-License-Identifier: Apache-2.0
// Which calls have to compute with 16 bits, so that a tensor has them for all that read it.
#include "pipeline/widening_order.h"

#include <gtest/gtest.h>

#include "partition/graph_text.h"

namespace tosaic {
namespace {

using Names = std::vector<std::string>;

// %a is read by two calls, %b by one, %p only passes it on, and %c leaves the program.
const char* const net = R"(graph @main(%x: 4xi8<1:0>) -> (%c) {
  %a: 4xi8<3:0> = aten.add.Tensor(%x, %x) loc("m.py":1 from "aten.add.Tensor" as "add")
  %b: 4xi8<5:0> = aten.add.Tensor(%a, %a) loc("m.py":2 from "aten.add.Tensor" as "add_1")
  %p: 4xi8<5:0> = aten.view.default(%b) {size=[4]} loc("m.py":3 from "aten.view.default" as "view")
  %c: 4xi8<7:0> = aten.add.Tensor(%p, %a) loc("m.py":4 from "aten.add.Tensor" as "add_2")
})";

struct Ordered {
  Graph graph = graph_of(net);
  std::vector<TunedTensor> order;
  Ordered(const std::vector<double>& noises, const std::map<std::string, double>& costs) {
    std::vector<RoundingNoise> all;
    for (std::size_t i = 0; i < noises.size(); ++i) {
      const std::size_t call = i == 2 ? 3 : i;
      all.push_back({graph.nodes[call].outputs[0], {call}, noises[i]});
    }
    double sum = 0;
    for (const auto& [name, cost] : costs) sum += cost;
    order = widening_order(graph, all, exported_nodes(graph), {costs, sum});
  }
};

TEST(WideningOrder, readers_are_needed_and_the_maker_where_several_read) {
  const Ordered found({1, 0, 0}, {{"add", 1}, {"add_1", 1}, {"view", 0}, {"add_2", 1}});
  ASSERT_EQ(found.order.size(), 1u);
  EXPECT_EQ(found.order[0].nodes, (Names{"add", "add_1", "add_2"}));
  EXPECT_NEAR(found.order[0].noise, 1, 1e-9);
  EXPECT_EQ(found.order[0].where, "m.py:1");
}

TEST(WideningOrder, what_passes_values_on_is_followed) {
  const Ordered found({0, 1, 0}, {{"add", 1}, {"add_1", 1}, {"add_2", 1}});
  EXPECT_EQ(found.order.at(0).nodes, (Names{"add_1", "add_2", "view"}));
}

TEST(WideningOrder, what_leaves_the_program_is_made_wide) {
  const Ordered found({0, 0, 1}, {});
  EXPECT_EQ(found.order.at(0).nodes, (Names{"add_2"}));
}

// The last one is cheap; the others share calls, so the second of them costs less, and names fewer.
TEST(WideningOrder, most_noise_for_its_cost_comes_first) {
  const Ordered found({6, 5, 4}, {{"add", 10}, {"add_1", 10}, {"view", 0}, {"add_2", 1}});
  ASSERT_EQ(found.order.size(), 3u);
  EXPECT_EQ(found.order[0].nodes, (Names{"add_2"}));
  EXPECT_EQ(found.order[1].nodes, (Names{"add_1", "view"}));
  EXPECT_EQ(found.order[2].nodes, (Names{"add"}));
  EXPECT_NEAR(found.order[0].noise, 4 / 15.0, 1e-9);
}

}  // namespace
}  // namespace tosaic
