// SPDX-License-Identifier: Apache-2.0
// Where a tensor's elements are, against moving them.
#include "quantise/window.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tosaic {
namespace {

struct Moved {
  const char* name;
  Ints from;
  std::vector<Ints> moves;  // in turns a permutation and a reshape
  bool in_place = true;
};
std::ostream& operator<<(std::ostream& to, const Moved& moved) { return to << moved.name; }

// Elements of `from`, permuted.
std::vector<float> permuted(const std::vector<float>& x, const Ints& from, const Ints& perms, Ints& to) {
  for (const std::int64_t d : perms) to.push_back(from[static_cast<std::size_t>(d)]);
  std::vector<float> y;
  for (std::int64_t i = 0; i < product(to); ++i) {
    Ints at(from.size());
    std::int64_t rest = i, offset = 0;
    for (std::size_t d = to.size(); d-- > 0; rest /= to[d]) at[static_cast<std::size_t>(perms[d])] = rest % to[d];
    for (std::size_t d = 0; d < from.size(); ++d) offset = offset * from[d] + at[d];
    y.push_back(x[static_cast<std::size_t>(offset)]);
  }
  return y;
}

class PlacedTest : public testing::TestWithParam<Moved> {};

TEST_P(PlacedTest, finds_each_element) {
  const Moved& moved = GetParam();
  std::vector<float> x(static_cast<std::size_t>(product(moved.from)));
  std::iota(x.begin(), x.end(), 0.0f);
  const TensorType type{DType::f32, Shape(moved.from), {}};
  std::vector<Move> moves;
  std::vector<float> wanted = x;
  Ints sizes = moved.from;
  for (std::size_t m = 0; m < moved.moves.size(); ++m) {
    Node node{.op = Operator(m % 2 == 0 ? "tosa.transpose" : "tosa.reshape")};
    if (m % 2 == 0) {
      node.attrs.set("perms", moved.moves[m]);
      Ints to;
      wanted = permuted(wanted, sizes, moved.moves[m], to);
      sizes = to;
    } else {
      sizes = moved.moves[m];
    }
    moves.push_back({std::move(node), {DType::f32, Shape(sizes), {}}});
  }
  const Look look(x, type, moves);
  const Placed& found = look.placed();
  EXPECT_EQ(found.copy.null(), moved.in_place);
  ASSERT_EQ(found.offsets.size(), sizes.size());
  for (std::int64_t i = 0; i < product(sizes); ++i) {
    std::int64_t rest = i, offset = 0;
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
      offset += found.offsets[d][static_cast<std::size_t>(rest % sizes[d])];
    ASSERT_EQ(found.x[offset], wanted[static_cast<std::size_t>(i)]) << i;
  }
}

const Moved all[] = {
    {"as_they_are", {2, 3, 4}, {}},
    {"channels_last", {1, 4, 5, 3}, {{0, 3, 1, 2}}},
    {"heads_of_attention", {2, 4, 5, 3}, {{0, 2, 1, 3}, {2, 5, 12}}},
    {"windows", {1, 4, 6, 2}, {{0, 1, 2, 3}, {1, 2, 2, 3, 2, 2}, {0, 1, 3, 2, 4, 5}, {6, 4, 2}}},
    {"shuffled_channels", {1, 6, 2, 2}, {{0, 1, 2, 3}, {1, 2, 3, 2, 2}, {0, 2, 1, 3, 4}, {1, 6, 2, 2}}},
    {"with_dims_of_one", {6, 1, 2}, {{2, 1, 0}, {1, 2, 3, 1, 2, 1}}},
    {"flat", {24}, {{0}, {2, 3, 4}, {2, 0, 1}}},
    {"split_elsewhere", {2, 3}, {{1, 0}, {2, 3}}, false},
};
INSTANTIATE_TEST_SUITE_P(moves, PlacedTest, testing::ValuesIn(all),
                         [](const auto& moved) { return std::string(moved.param.name); });

}  // namespace
}  // namespace tosaic
