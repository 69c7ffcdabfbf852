// SPDX-License-Identifier: Apache-2.0
// What products of few rows share: a work group makes a few columns of one row, and its invocations divide the depth.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

namespace row_product {
inline constexpr std::int64_t most_rows = 4, shortest = 64;  // rows, and their elements
inline constexpr std::uint32_t wide = 2, deep = 64;          // quads of columns, and invocations along the depth
// By quantised weights:
inline constexpr std::int64_t few_rows = 8;        // of which each is a work group's
inline constexpr std::uint32_t reads_at_once = 4;  // that wait together
inline constexpr std::int64_t rows_at_once = 8;    // of an invocation, where there are more
}  // namespace row_product

// Of a row of the input and a quad of columns, an invocation's part: elements `part`, `part + deep` and so on.
struct PartOfRow {
  Value row, depth, part, there;  // there: is it one of the product's?
  std::uint32_t deep;
  std::optional<Value> input_zero, weight_zero;
  std::function<Value(Value k)> weights;  // where the quad of element k lies
};
VectorVariable sum_of_part(Kernel& s, const tosa::View& view, Buffer input, Buffer weights, const PartOfRow& of);

struct RowOfQuads {
  Value row, first;  // of the row's quads of columns, the group's first one
  Value all_columns, all_rows;
};
// Adds up what the invocations have of each column, and stores it, with its bias, through `end`. `finished`: what
// becomes of a sum instead.
void store_row_sums(Kernel& s, const tosa::View& view, const Finish& end, const VectorVariable& sum,
                    const RowOfQuads& of, const std::function<Value(Value sum, Value column)>& finished = {});

}  // namespace tosaic::shaders
