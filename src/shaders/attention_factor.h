// SPDX-License-Identifier: Apache-2.0
// Queries, keys or values as the work groups of attention read them: some lines at a time, into memory that they share.
#pragma once
#include "shaders/fetched_operand.h"
#include "shaders/strided_operand.h"

namespace tosaic::shaders {

class AttentionFactor {
 public:
  // A line takes so many vectors there, which is as many as there are or more, and lines begin `pitch` vectors apart.
  struct Lines {
    std::uint32_t vectors, pitch, invocations;
  };
  // Of that batch: lines of `wide` elements, whole vectors, lie `apart` elements apart. `as`: f16 or int8, what they
  // are.
  AttentionFactor(Kernel& s, const StridedMatrices& strided, Value batch, const Dim& apart, std::int64_t wide,
                  Fetched::As as, const Lines& lines);

  // `count` lines from line `first` on, of as many as there are; further ones are zeros.
  void fetch(std::uint32_t count, Value first, Value all);
  // As many, from vector `begin` of the memory on.
  void share(const Shared& memory, std::uint32_t count, std::uint32_t begin);

 private:
  // Has every invocation as many of the vectors?
  bool is_even(std::uint32_t count) const { return count * lines_.vectors % lines_.invocations == 0; }
  std::uint32_t reads_of(std::uint32_t count) const {
    return (count * lines_.vectors + lines_.invocations - 1) / lines_.invocations;
  }
  Value place_of(std::uint32_t i) { return s_.local() + static_cast<std::int64_t>(i * lines_.invocations); }

  Kernel& s_;
  const Lines lines_;
  Fetched fetched_;
  Value begin_, apart_, width_;  // in vectors
};

}  // namespace tosaic::shaders
