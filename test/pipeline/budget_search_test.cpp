// SPDX-License-Identifier: Apache-2.0
// The search of a budget on costs and accuracies that are a formula.
#include "pipeline/budget_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tosaic {
namespace {

// Each tensor that is widened brings its decibels and costs its share of 100.
struct Formula {
  std::vector<double> db, cost;
  std::vector<double> told = cost;  // what the order believes
  int measured = 0;

  std::vector<TunedTensor> order() const {
    std::vector<TunedTensor> tensors;
    for (std::size_t i = 0; i < db.size(); ++i)
      tensors.push_back({"aten.add.Tensor", "", {"add_" + std::to_string(i)}, 0.1, told[i] / 100});
    return tensors;
  }
  std::vector<TunedPoint> search(const std::optional<Budget>& budget) {
    auto found = search_budget(order(), {20, 100}, budget, [&](const std::vector<std::size_t>& wide) {
      ++measured;
      MeasuredSet sum{20, 100};
      for (std::size_t i : wide) sum.db += db[i], sum.cost += cost[i];
      return Result<MeasuredSet>(sum);
    });
    EXPECT_TRUE(found.ok());
    return *std::move(found);
  }
};

using Tensors = std::vector<std::size_t>;

TEST(BudgetSearch, as_few_as_are_accurate_enough) {
  Formula ten{std::vector<double>(10, 1), std::vector<double>(10, 2)};
  const Budget budget{.least_db = 26.5};
  const auto points = ten.search(budget);
  const TunedPoint& chosen = points[choose_point(points, budget)];
  EXPECT_EQ(chosen.tensors.size(), 7u);  // 27 dB; 6 give 26
  EXPECT_EQ(chosen.calls, 7u);
  EXPECT_NEAR(chosen.ratio, 1.14, 1e-9);
  EXPECT_TRUE(meets(chosen, budget));
  EXPECT_LE(ten.measured, 4 + 3);  // 1, 2, 4, 8, and halves
}

TEST(BudgetSearch, int8_may_be_accurate_enough) {
  Formula one{{1}, {2}};
  const Budget budget{.least_db = 20};
  const auto points = one.search(budget);
  EXPECT_EQ(points.size(), 1u);
  EXPECT_EQ(one.measured, 0);
  EXPECT_EQ(choose_point(points, budget), 0u);
}

TEST(BudgetSearch, what_cannot_be_met_comes_near) {
  Formula three{{1, 2, 3}, {1, 1, 1}};
  const Budget budget{.least_db = 40};
  const auto points = three.search(budget);
  const TunedPoint& chosen = points[choose_point(points, budget)];
  EXPECT_EQ(chosen.tensors, (Tensors{0, 1, 2}));
  EXPECT_FALSE(meets(chosen, budget));
}

TEST(BudgetSearch, a_tensor_without_room_is_left_out) {
  // Nobody knows that the second one costs half of the program.
  Formula four{{1, 5, 1, 1}, {2, 50, 2, 2}, {2, 2, 2, 2}};
  const Budget budget{.most_ratio = 1.1};
  const auto points = four.search(budget);
  EXPECT_EQ(points[choose_point(points, budget)].tensors, (Tensors{0, 2, 3}));
}

TEST(BudgetSearch, what_is_known_to_cost_too_much_is_not_measured) {
  Formula two{{9, 1}, {60, 5}};
  const Budget budget{.most_ratio = 1.1};
  const auto points = two.search(budget);
  EXPECT_EQ(points[choose_point(points, budget)].tensors, (Tensors{1}));
  EXPECT_EQ(two.measured, 1);
}

TEST(BudgetSearch, a_step_that_loses_is_not_chosen) {
  Formula three{{3, -2, 1}, {1, 1, 1}};
  const Budget budget{.most_ratio = 2};
  const auto points = three.search(budget);
  EXPECT_EQ(points[choose_point(points, budget)].tensors, (Tensors{0}));
}

TEST(BudgetSearch, without_a_budget_all_sizes_are_shown) {
  Formula five{std::vector<double>(5, 1), std::vector<double>(5, 1)};
  const auto points = five.search({});
  std::vector<std::size_t> sizes;
  for (const TunedPoint& point : points) sizes.push_back(point.tensors.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{0, 1, 2, 4, 5}));
  EXPECT_EQ(choose_point(points, {}), 0u);
}

TEST(BudgetSearch, nothing_to_widen_is_int8) {
  Formula none;
  EXPECT_EQ(none.search({}).size(), 1u);
  EXPECT_EQ(none.search(Budget{.least_db = 90}).size(), 1u);
  EXPECT_EQ(none.search(Budget{.most_ratio = 1.1}).size(), 1u);
}

TEST(BudgetSearch, an_error_ends_it) {
  const auto found = search_budget(Formula{{1}, {1}}.order(), {20, 100}, {},
                                   [](const Tensors&) { return Result<MeasuredSet>(error("vela.missing", "")); });
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, "vela.missing");
}

}  // namespace
}  // namespace tosaic
