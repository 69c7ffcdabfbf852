// SPDX-License-Identifier: Apache-2.0
// What kernels of attention have in common: the queries of a workgroup, what stands between scores and softmax, and
// where results go.
#pragma once
#include "shaders/attention.h"
#include "shaders/strided_operand.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {

struct AttentionSizes {
  std::int64_t batches, rows, keys;
  std::int64_t deep, columns;  // elements of a query and of a value
};
AttentionSizes sizes_of(const Graph& graph, const Attention& attention);

struct AttentionOperands {
  StridedMatrices queries, keys, values;
};
// Where they can be read in whole vectors of `unit` elements of that type, and are so many that a tile of queries is
// not for nothing.
std::optional<AttentionOperands> find_operands(const Work& work, const Attention& attention, DType type,
                                               std::int64_t unit);

// Of a workgroup that has `rows` of them.
class QueriesOfGroup {
 public:
  QueriesOfGroup(Kernel& s, const AttentionSizes& sizes, std::uint32_t rows);
  static std::int64_t groups(const AttentionSizes& sizes, std::uint32_t rows);
  // A row for each, which goes through what follows the second product.
  void store(const Finish& end, const TileAccumulators& results) const;

  const AttentionSizes sizes;
  Value batch, first;  // the first one of those that the batch has
  Value all, keys;     // so many has the batch

 private:
  Kernel& s_;
};

class AttentionScores {
 public:
  // In what `unit` counts: 1, or bits, so that e^x = 2^(x * bits_of_e).
  AttentionScores(Kernel& s, const Attention& attention, const QueriesOfGroup& queries, double unit);

  // A product of the workgroup's query `line` and a key as softmax takes it. Where there is no key: what has no weight.
  Value finished(Value score, Value line, Value key) const;

  static constexpr double bits_of_e = 1.4426950408889634;

 private:
  Kernel& s_;
  const Attention& attention_;
  const Value first_, rows_, keys_;  // the first score's element, and how many queries and keys there are
  const double unit_;
  std::optional<Value> factor_;
};

// NaN may be passed over: its weight is NaN all the same, and so is all that the row makes.
Value larger_score(Value a, Value b);
// What a row's scores are counted from: rows that have seen nothing but -inf have no weights; in the end these become
// NaN, as softmax makes them.
Value base_of_scores(Value largest);

}  // namespace tosaic::shaders
