// SPDX-License-Identifier: Apache-2.0
// A product of many rows that are ready one after the other, as the states of a recurrent layer are, and that are read
// one by one, as the next layer's steps do: each row by itself, so that one layer's steps need not wait for all of the
// other's.
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

struct RowsApart {
  ValueId root = no_value;              // the product's result, or the view of it that is finished
  std::vector<std::uint32_t> epilogue;  // between the product and its rows
  struct Row {
    ValueId input;        // the row of the product's operand
    std::uint32_t slice;  // node that takes the row of the result
    std::int64_t first;   // element of the result
  };
  std::vector<Row> rows;
};

// How many nodes stand one behind the other before each value is there.
std::vector<std::uint32_t> depths_of(const Graph& graph);

// Of a convolution with constant weights; `can_finish`: is the node elementwise, and free? nullopt: its rows are not
// read one by one, not ready one after the other, or too large to be worth reading the weights for each.
std::optional<RowsApart> find_rows_apart(const plan::Uses& uses, const std::vector<std::uint32_t>& depths,
                                         const std::function<bool(std::uint32_t node)>& can_finish, std::uint32_t n);

// The dispatches of each row; nullopt: there is one that cannot be.
std::optional<std::vector<MadeList>> make_rows_apart(const Work& work, const Node& node, const RowsApart& apart);

}  // namespace tosaic::shaders
