// SPDX-License-Identifier: Apache-2.0
// Rows that an operation works with. Every thread of a run has its own, and they stay between runs: what has run once
// allocates none of them again.
#pragma once
#include <cstdint>
#include <vector>

namespace tosaic::ethosu {

struct Scratch {
  std::vector<std::int64_t> stored;         // a row as it is stored, before it is stretched
  std::vector<std::int16_t> narrow_stored;  // the same in 16 bits
  std::vector<std::int64_t> left, right;    // an elementwise operation's operands
  std::vector<std::int64_t> input, positions;
  std::vector<std::int64_t> wide_sums;
  std::vector<std::int32_t> sums;
  std::vector<std::int64_t> finished, widened;  // of the output stage
  std::vector<std::int32_t> narrowed, narrow_finished;

  // The same memory at every call, as soon as it is large enough.
  template <class T>
  static T* of(std::vector<T>& row, std::int64_t elements) {
    row.resize(static_cast<std::size_t>(elements));
    return row.data();
  }
};

}  // namespace tosaic::ethosu
