// SPDX-License-Identifier: Apache-2.0
#include "pipeline/budget_search.h"

#include <algorithm>
#include <numeric>

namespace tosaic {
namespace {

constexpr int most_halvings = 4;  // between a set that is accurate enough and one that is not
constexpr int most_left_out = 6;  // tensors that a cost has no room for, measured

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class Search {
 public:
  Search(const std::vector<TunedTensor>& order, MeasuredSet int8, const MeasureSet& measure)
      : order_(order), measure_(measure), int8_(int8.cost) {
    add({}, int8);
  }

  Status all_sizes() {
    for (std::size_t k = 1; k < order_.size(); k *= 2) TOSAIC_CHECK(measured(first(k)));
    if (!order_.empty()) TOSAIC_CHECK(measured(first(order_.size())));
    return {};
  }

  Status accurate(const Budget& budget) {
    const auto enough = [&] { return meets(points_.back(), budget); };
    std::size_t low = 0, high = 0;  // too few, enough
    while (!enough() && high < order_.size()) {
      low = high;
      high = std::min(std::max<std::size_t>(2 * high, 1), order_.size());
      TOSAIC_CHECK(measured(first(high)));
    }
    if (!enough()) return {};
    for (int i = 0; i < most_halvings && high - low > 1; ++i) {
      const std::size_t middle = low + (high - low) / 2;
      TOSAIC_CHECK(measured(first(middle)));
      (enough() ? high : low) = middle;
    }
    return {};
  }

  Status cheap(double ratio) {
    std::vector<std::size_t> wide;
    double spent = 1;
    int left_out = 0;
    for (std::size_t next = 0, step = 1; next < order_.size() && left_out < most_left_out;) {
      if (spent + order_[next].cost > ratio) {  // 16 bits cost about as much again
        ++next;
        continue;
      }
      std::vector<std::size_t> more = wide;
      const std::size_t end = std::min(next + step, order_.size());
      for (std::size_t i = next; i < end; ++i) more.push_back(i);
      TOSAIC_CHECK(measured(more));
      if (points_.back().ratio <= ratio) {
        wide = std::move(more);
        spent = points_.back().ratio;
        next = end;
        step *= 2;
      } else if (step > 1) {
        step /= 2;
      } else {
        ++next, ++left_out;
      }
    }
    return {};
  }

  std::vector<TunedPoint> points() && {
    std::stable_sort(points_.begin() + 1, points_.end(),
                     [](const TunedPoint& a, const TunedPoint& b) { return a.cost < b.cost; });
    return std::move(points_);
  }

 private:
  void add(std::vector<std::size_t> wide, MeasuredSet found) {
    std::size_t calls = 0;
    for (std::size_t i : wide) calls += order_[i].nodes.size();
    points_.push_back({std::move(wide), calls, found.db, found.top1, found.cost, int8_ > 0 ? found.cost / int8_ : 1});
  }
  Status measured(std::vector<std::size_t> wide) {
    TOSAIC_TRY(const MeasuredSet found, measure_(wide));
    add(std::move(wide), found);
    return {};
  }

  const std::vector<TunedTensor>& order_;
  const MeasureSet& measure_;
  const double int8_;
  std::vector<TunedPoint> points_;
};

}  // namespace

Result<std::vector<TunedPoint>> search_budget(const std::vector<TunedTensor>& order, MeasuredSet int8,
                                              const std::optional<Budget>& budget, const MeasureSet& measure) {
  Search search(order, int8, measure);
  if (!budget) {
    TOSAIC_CHECK(search.all_sizes());
  } else if (budget->most_ratio) {
    TOSAIC_CHECK(search.cheap(*budget->most_ratio));
  } else {
    TOSAIC_CHECK(search.accurate(*budget));
  }
  return std::move(search).points();
}

bool meets(const TunedPoint& point, const std::optional<Budget>& budget) {
  if (!budget) return true;
  if (budget->least_db) return point.db >= *budget->least_db;
  if (budget->least_top1) return point.top1 >= budget->least_top1;
  return point.ratio <= *budget->most_ratio;
}

std::size_t choose_point(const std::vector<TunedPoint>& points, const std::optional<Budget>& budget) {
  if (!budget) return 0;
  const auto better = [&](const TunedPoint& a, const TunedPoint& b) {
    const bool fits = meets(a, budget);
    if (fits != meets(b, budget)) return fits;
    if (!budget->most_ratio && fits) return a.cost < b.cost;
    return std::pair(a.top1, a.db) > std::pair(b.top1, b.db);
  };
  return static_cast<std::size_t>(std::ranges::min_element(points, better) - points.begin());
}

}  // namespace tosaic
