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

// Where a field lies in the register file. No bits: the product does not have it.
struct BitField {
  std::uint16_t index = 0;
  std::uint8_t low = 0, bits = 0;
};

constexpr std::uint16_t index_of(const Row& row) {
  return static_cast<std::uint16_t>((row.width == Width::two_words ? 256u : 0u) + (row.opcode & 0xffu));
}

// A register's first field where `field` is "".
template <Name reg, Name field>
consteval BitField find_bit_field(bool u85) {
  for (const Row& row : table::rows) {
    if (row.name != reg.view() || !has(row, u85)) continue;
    for (const Field& f : fields_of(row))
      if (f.bits != 0 && (f.name == field.view() || field.view().empty())) return {index_of(row), f.low, f.bits};
  }
  return {};
}

class Registers {
 public:
  explicit Registers(bool u85) : u85_(u85) {}

  bool u85() const { return u85_; }
  void write(const Row& row, std::uint64_t value) {
    const std::size_t i = index_of(row);
    values_[i] = value;
    written_[i] = true;
  }

  // The field's bits. 0 for a register that this product does not have.
  template <Name reg, Name field>
  std::uint64_t get() const {
    constexpr BitField u55 = find_bit_field<reg, field>(false), u85 = find_bit_field<reg, field>(true);
    static_assert(u55.bits != 0 || u85.bits != 0, "no such register field");
    return bits(u55, u85);
  }
  // The whole of a 40-bit address or stride, as a signed number.
  template <Name reg>
  std::int64_t signed40() const {
    return static_cast<std::int64_t>(get<reg, "addr">() << 24) >> 24;
  }
  template <Name reg>
  bool written() const {
    constexpr BitField u55 = find_bit_field<reg, "">(false), u85 = find_bit_field<reg, "">(true);
    const BitField at = u85_ ? u85 : u55;
    return at.bits != 0 && written_[at.index];
  }

  // The first register read since forget_missing() that was never written; null when there is none.
  const Row* missing() const;
  void forget_missing() const { missing_ = none; }

 private:
  static constexpr std::uint16_t none = 0xffff;
  // Not inline: hundreds of places read a field.
  std::uint64_t bits(BitField u55, BitField u85) const;

  bool u85_;
  std::array<std::uint64_t, 512> values_{};
  std::bitset<512> written_;
  mutable std::uint16_t missing_ = none;  // index
};

}  // namespace tosaic::ethosu
