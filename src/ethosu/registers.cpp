// SPDX-License-Identifier: Apache-2.0
#include "ethosu/registers.h"

namespace tosaic::ethosu {

std::uint64_t Registers::bits(BitField u55, BitField u85) const {
  const BitField at = u85_ ? u85 : u55;
  if (at.bits == 0) return 0;
  if (!written_[at.index] && missing_ == none) missing_ = at.index;
  return values_[at.index] >> at.low & ((std::uint64_t{1} << at.bits) - 1);
}

const Row* Registers::missing() const {
  if (missing_ == none) return nullptr;
  for (const Row& row : rows())
    if (!is_operation(row) && index_of(row) == missing_ && has(row, u85_)) return &row;
  return nullptr;
}

}  // namespace tosaic::ethosu
