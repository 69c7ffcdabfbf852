// SPDX-License-Identifier: Apache-2.0
// The register file: what the commands wrote so far. Fields are found in the instruction table while compiling:
//   registers.get<"IFM_PRECISION", "activation_type">()
// Reading a register that no command ever wrote is remembered: its reset value is unknown, so the operation that
// depends on it is refused.
#pragma once
#include <algorithm>
#include <bitset>

#include "ethosu/isa_table.h"

namespace tosaic::ethosu {

template <std::size_t n>
struct Name {
  char text[n];
  consteval Name(const char (&from)[n]) { std::copy_n(from, n, text); }
  constexpr std::string_view view() const { return {text, n - 1}; }
};

struct Position {
  bool exists = false;
  const Row* row = nullptr;
  Field field{};
};

template <Name reg, Name field>
consteval Position position(bool u85) {
  for (const Row& row : table::rows) {
    if (row.name != reg.view() || !has(row, u85)) continue;
    for (const Field& f : row.fields)
      if (f.bits != 0 && f.name == field.view()) return {true, &row, f};
  }
  return {};
}

class Registers {
 public:
  explicit Registers(bool u85) : u85_(u85) {}

  bool u85() const { return u85_; }
  void write(const Row& row, std::uint64_t value) {
    const std::size_t i = index(row);
    values_[i] = value;
    written_[i] = true;
  }

  // The field's bits. 0 for a register that this product does not have.
  template <Name reg, Name field>
  std::uint64_t get() const {
    constexpr Position p55 = position<reg, field>(false), p85 = position<reg, field>(true);
    static_assert(p55.exists || p85.exists, "no such register field");
    const Position& p = u85_ ? p85 : p55;
    if (!p.exists) return 0;
    const std::size_t i = index(*p.row);
    if (!written_[i] && !missing_) missing_ = p.row;
    return values_[i] >> p.field.low & ((std::uint64_t{1} << p.field.bits) - 1);
  }
  // The whole of a 40-bit address or stride, as a signed number.
  template <Name reg>
  std::int64_t signed40() const {
    return static_cast<std::int64_t>(get<reg, "addr">() << 24) >> 24;
  }
  template <Name reg>
  bool written() const {
    for (const Row& row : table::rows)
      if (row.name == reg.view() && has(row, u85_)) return written_[index(row)];
    return false;
  }

  // The first register read since forget_missing() that was never written; null when there is none.
  const Row* missing() const { return missing_; }
  void forget_missing() const { missing_ = nullptr; }

 private:
  static constexpr std::size_t index(const Row& row) {
    return (row.width == Width::two_words ? 256u : 0u) + (row.opcode & 0xffu);
  }
  bool u85_;
  std::array<std::uint64_t, 512> values_{};
  std::bitset<512> written_;
  mutable const Row* missing_ = nullptr;
};

}  // namespace tosaic::ethosu
