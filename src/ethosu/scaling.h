// SPDX-License-Identifier: Apache-2.0
// The scaling primitive: out = (v * scale + r) >> shift, where r depends on the rounding mode. Products of a 48-bit
// accumulator and a 32-bit scale need more than 64 bits.
#pragma once
#include <cstdint>

#include "ethosu/mutate.h"
#include "ethosu/wide.h"

namespace tosaic::ethosu {

enum class Rounding : std::uint8_t { double_round, natural, double_asymmetric, symmetric, to_zero, to_lower };

struct Scale {
  std::uint32_t multiplier = 1;
  std::uint8_t shift = 0;
  std::uint8_t double_bits = 0;  // dbl_rnd of U85: the second rounding happens at bit 31 - double_bits
  bool unit() const { return multiplier == 1 && shift == 0; }
};

inline Wide rounding_term(Rounding rounding, bool negative, int shift, int double_bits) {
  const Wide half = shift == 0 ? Wide{0} : Wide{1} << (shift - 1);
  const int second = 31 - double_bits;
  const Wide twice = double_bits > 30 ? Wide{0} : Wide{1} << (30 - double_bits);
  if (mutated("rounding.all_to_lower")) return 0;
  switch (rounding) {
    case Rounding::natural: return mutated("rounding.natural_symmetric") && negative && shift ? half - 1 : half;
    case Rounding::double_round:
      if (shift <= second || mutated("rounding.double_as_natural")) return half;
      return negative ? half - twice : half + twice;
    case Rounding::double_asymmetric: return shift > second ? half + twice : half;
    case Rounding::symmetric: return negative && shift ? half - 1 : half;
    case Rounding::to_zero: return negative ? (Wide{1} << shift) - 1 : Wide{0};
    case Rounding::to_lower: return 0;
  }
  return 0;
}

// Far outside of what any element holds; values beyond are cut there, so that later sums cannot overflow.
inline std::int64_t bounded(Wide value) {
  constexpr Wide most = Wide{1} << 62;
  return static_cast<std::int64_t>(value > most ? most : value < -most ? -most : value);
}

// Exact, for |v| < 2^63 and any multiplier.
inline std::int64_t rescale(std::int64_t v, const Scale& scale, Rounding rounding) {
  if (scale.shift == 0) return bounded(Wide{v} * std::int64_t{scale.multiplier});
  const Wide sum =
      Wide{v} * std::int64_t{scale.multiplier} + rounding_term(rounding, v < 0, scale.shift, scale.double_bits);
  return bounded(sum >> scale.shift);
}

// The same where |v| < 2^31, multiplier < 2^31 and shift < 62: 64 bits suffice (2^62 + 2^60 + 2^30).
inline bool fits_narrow(const Scale& scale) {
  return scale.multiplier < (1u << 31) && scale.shift < 62 && scale.double_bits == 0;
}

}  // namespace tosaic::ethosu
