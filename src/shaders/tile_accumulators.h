// SPDX-License-Identifier: Apache-2.0
// The sums of a product's tile in memory that a work group shares: from there each goes through what follows the
// product, into the rows and columns that there are.
#pragma once
#include <functional>

#include "shaders/kernels.h"

namespace tosaic::shaders {

// `parts` tiles of rows x columns, which are added up. Rows begin `pitch` vectors apart.
struct TileAccumulators {
  Shared memory;
  Kind kind;  // of the sums; reals may lie in memory of integers
  std::uint32_t rows, columns, parts, pitch, invocations;
};

// The quad of sums there, of all parts.
Quad accumulators_at(Kernel& s, const TileAccumulators& sums, Value at);
// Something else in place of the first part's, and that again.
void store_at(Kernel& s, const TileAccumulators& sums, Value at, const Quad& made);
Quad made_at(Kernel& s, const TileAccumulators& sums, Value at, bool real);

class Sink {
 public:
  // `before`: where the batch begins among elements; rows lie `apart`. `biased`: a convolution, whose bias is added.
  // By quads: columns, and all that is before them, are multiples of four.
  Sink(Kernel& s, const Finish& end, const tosa::View* biased, bool by_quads, Value first_column, Value all_rows,
       Value all_columns, Value before, Value apart);

  // Sums are stored there as they are, by quads; instead of what `end` does.
  void store_into(const Buffer& buffer) { raw_ = buffer; }
  // Before the sums are made: reads what each invocation then needs whatever the row.
  void prepare(std::uint32_t columns, std::uint32_t invocations);
  // What becomes of sums of a row before the bias is added: of four columns from `column` on, or of the first one
  // alone.
  using Scaled = std::function<Quad(const Quad& sums, Value row, Value column)>;
  void scale(Scaled scaled) { scaled_ = std::move(scaled); }
  void take(const TileAccumulators& sums, Value first_row) const;

 private:
  struct Taken;
  Taken taken(const TileAccumulators& sums, Value first_row, Value number, bool may_be_beyond) const;
  void store(const Taken& taken) const;

  Kernel& s_;
  const Finish& end_;
  const tosa::View* biased_;
  const bool by_quads_;
  const Value first_column_, all_rows_, all_columns_, before_, apart_;
  std::optional<Buffer> raw_;
  Scaled scaled_;
  std::optional<Quad> bias_;  // of all of this invocation's quads
};

}  // namespace tosaic::shaders
