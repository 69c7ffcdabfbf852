// SPDX-License-Identifier: Apache-2.0
// Products by weights that are quantised, and rows of quantised tables: an invocation makes four columns of some rows,
// or of a few rows a work group a few columns, whose invocations divide the depth. What a weight stands for is computed
// where it is used.
#include "ops/definitions/extension.h"
#include "shaders/axes.h"
#include "shaders/int8_gemm.h"
#include "shaders/product.h"
#include "shaders/quantised_matrix.h"
#include "shaders/quantised_weights.h"
#include "shaders/row_product.h"

namespace tosaic::shaders {
using namespace row_product;

bool takes_quantised_product(const tosa::View& view) {
  return view.node().op == extension::op::scaled_product && view.in(0).dtype != DType::i8;
}
bool takes_few_quantised_rows(const tosa::View& view) {
  return takes_quantised_product(view) && most(rows_of_product(view)) <= few_rows;
}

MadeList make_quantised_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows;
  const Dim rows = rows_of_product(view);
  const std::int64_t at_once = std::min(rows_at_once, most(rows));
  Kernel s(work, name_of_product(node), ceil_div(rows, at_once) * matrix->quads());
  const QuantisedByRow quantised(s, *matrix);
  const Value quads = s.param(matrix->quads()), quad = s.index() % quads, first = s.index() / quads * at_once;
  const Value all_rows = s.param(rows), all_columns = s.param(columns), depth = s.param(matrix->depth);
  const Buffer input = s.input(node.inputs[0]);
  std::vector<Value> begins;
  std::vector<VectorVariable> sums;
  for (std::int64_t r = 0; r < at_once; ++r) {
    begins.push_back(smallest(first + r, all_rows - 1) * depth);
    sums.push_back(s.variable(s.splat(s.real(0))));
  }
  s.loop(s.integer(0), quantised.words(), s.integer(1), [&](Value at) {
    const QuantisedByRow::Read read = quantised.read(quad, at);
    for (std::int64_t i = 0; i < quantised.per_word(); ++i) {
      const Vector weights = quantised.weights(read, s.integer(i));
      for (std::size_t r = 0; r < sums.size(); ++r)
        sums[r].set(sums[r].get() + weights * s.load(input, begins[r] + at * quantised.per_word() + i));
    }
  });
  for (std::size_t r = 0; r < sums.size(); ++r) {
    const Value row = first + static_cast<std::int64_t>(r);
    s.repeat(4, [&](int q) {
      const Value column = quad * 4 + q;
      s.when((row < all_rows) & (column < all_columns), [&] {
        end.store(s, row * all_columns + column, lane(sums[r].get(), static_cast<Word>(q)) + bias_at(s, view, column));
      });
    });
  }
  return one(s);
}

MadeList make_quantised_row_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows;
  const Dim rows = rows_of_product(view);
  const std::int64_t across = (matrix->quads() + wide - 1) / wide;
  Kernel s(work, name_of_product(node), Groups{rows * across, wide * deep});
  const QuantisedByRow quantised(s, *matrix);
  const Value local = s.local(), tiles = s.param(across), quads = s.param(matrix->quads());
  const Value row = s.group() / tiles, first = s.group() % tiles * wide, depth = s.param(matrix->depth);
  const Value quad = first + local % s.integer(wide), part = local / s.integer(wide), all_columns = s.param(columns);
  const Value there = (quad < quads) & (row < s.param(rows));
  const Buffer input = s.input(node.inputs[0]);
  const VectorVariable sum = s.variable(s.splat(s.real(0)));
  const Value begin = s.select(there, row * depth, s.integer(0)), own = s.select(there, quad, s.integer(0));
  s.loop(part, quantised.words(), s.integer(deep * reads_at_once), [&](Value first_word) {
    std::vector<QuantisedByRow::Read> reads;
    std::vector<Value> x;
    for (std::uint32_t n = 0; n < reads_at_once; ++n) {
      const Value at = first_word + n * deep, inside = at < quantised.words();
      const Value place = s.select(inside, at, s.integer(0));
      reads.push_back(quantised.read(own, place));
      for (std::int64_t i = 0; i < quantised.per_word(); ++i)
        x.push_back(s.select(inside, s.load(input, begin + place * quantised.per_word() + i), s.real(0)));
    }
    for (std::size_t n = 0; n < x.size(); ++n) {
      const auto per = static_cast<std::size_t>(quantised.per_word());
      sum.set(sum.get() + quantised.weights(reads[n / per], s.integer(static_cast<std::int64_t>(n % per))) * x[n]);
    }
  });
  store_row_sums(s, view, end, sum, {row, first, all_columns, s.param(rows)});
  return one(s);
}

MadeList make_quantised_gather(const Work& work, const Node& node, const Finish& end) {
  namespace operands = extension::scaled_gather;
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  Kernel s(work, "gather", elements_of(view.out().shape));
  if (matrix->by_depth) {
    const QuantisedByDepth quantised(s, *matrix);
    const Value channels = s.param(matrix->depth), rows = s.param(matrix->rows), channel = s.index() % channels;
    const Value asked = s.load(s.input(node.inputs[operands::indices]), s.index() / channels);
    const Value row = smallest(largest(asked, s.integer(0)), rows - 1);
    end.store(s, s.index(), quantised.weight(row / s.integer(4), row % s.integer(4), channel));
    return one(s);
  }
  const QuantisedByRow quantised(s, *matrix);
  const Value channels = s.param(matrix->depth), rows = s.param(matrix->rows), channel = s.index() % channels;
  const Value asked = s.load(s.input(node.inputs[operands::indices]), s.index() / channels);
  const Value row = smallest(largest(asked, s.integer(0)), rows - 1), per = s.integer(quantised.per_word());
  end.store(s, s.index(), quantised.weight(row / s.integer(4), row % s.integer(4), channel / per, channel % per));
  return one(s);
}

}  // namespace tosaic::shaders
