// SPDX-License-Identifier: Apache-2.0
// A message is a polynomial over GF(2), its checksum the remainder by P of degree 32. Blocks of 16 bytes are folded:
// one that stands D bits before another is worth, modulo P, what it gives when multiplied by x^D mod P and added to
// that one. Eight sums go side by side; what is left of them is a short message with the same remainder.
#include "simd/checksum.h"

#include <array>
#include <cstring>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/checksum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef TOSAIC_SIMD_CHECKSUM
#define TOSAIC_SIMD_CHECKSUM
namespace tosaic::simd {
namespace {

// Bit i of a reflected word of 32 bits stands for x^(31 - i): multiplied by x, and x^32 replaced by the rest of P.
constexpr std::uint32_t times_x(std::uint32_t a) { return (a >> 1) ^ (a & 1u ? 0xedb88320u : 0u); }

// x^n mod P in 64 reflected bits, for a carry-less product.
constexpr std::uint64_t power(int n) {
  std::uint32_t a = 0x80000000u;
  while (n-- > 0) a = times_x(a);
  return std::uint64_t{a} << 32;
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t a = i;
    for (int bit = 0; bit < 8; ++bit) a = times_x(a);
    t[0][i] = a;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
  return t;
}
constexpr Tables tables = make_tables();

// Of the remainder so far, by eight bytes at a time.
std::uint32_t go_on(std::uint32_t remainder, const std::uint8_t* data, std::size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + 4, 4);
    low ^= remainder;
    remainder = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
                tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
                tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; size > 0; ++data, --size) remainder = (remainder >> 8) ^ tables[0][(remainder ^ *data) & 0xff];
  return remainder;
}

}  // namespace
}  // namespace tosaic::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace tosaic::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Where a processor multiplies without carries; the tables do the rest, everywhere else all.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
std::uint32_t checksum(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t block = 16, sums = 8, stride = block * sums;
  if (size < 2 * stride) return ~go_on(~0u, data, size);
  const hn::FixedTag<std::uint64_t, 2> d;
  const hn::Repartition<std::uint8_t, decltype(d)> bytes;
  const auto load = [&](std::size_t at) HWY_ATTR { return hn::BitCast(d, hn::LoadU(bytes, data + at)); };
  // The product of two reflected words is one bit short of twice their width: x^(n - 1) makes up for it.
  constexpr int distance = 8 * static_cast<int>(stride);
  alignas(16) constexpr std::uint64_t powers[2] = {power(distance + 63), power(distance - 1)};
  const auto by = hn::Load(d, powers);
  alignas(16) constexpr std::uint64_t ones[2] = {0xffffffffu, 0};
  auto s0 = hn::Xor(load(0), hn::Load(d, ones));
  auto s1 = load(block), s2 = load(2 * block), s3 = load(3 * block), s4 = load(4 * block), s5 = load(5 * block),
       s6 = load(6 * block), s7 = load(7 * block);
  std::size_t at = stride;
  const auto fold = [&](auto sum, std::size_t i) HWY_ATTR {
    return hn::Xor(hn::Xor(hn::CLMulLower(sum, by), hn::CLMulUpper(sum, by)), load(at + i * block));
  };
  for (; at + stride <= size; at += stride) {
    s0 = fold(s0, 0), s1 = fold(s1, 1), s2 = fold(s2, 2), s3 = fold(s3, 3);
    s4 = fold(s4, 4), s5 = fold(s5, 5), s6 = fold(s6, 6), s7 = fold(s7, 7);
  }
  std::uint8_t left[stride];
  std::size_t next = 0;
  for (const auto& sum : {s0, s1, s2, s3, s4, s5, s6, s7})
    hn::StoreU(hn::BitCast(bytes, sum), bytes, left + block * next++);
  return ~go_on(go_on(0, left, stride), data + at, size - at);
}
#else
std::uint32_t checksum(const std::uint8_t* data, std::size_t size) { return ~go_on(~0u, data, size); }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::simd {

HWY_EXPORT(checksum);
std::uint32_t crc32(const void* data, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(checksum)(static_cast<const std::uint8_t*>(data), size);
}

}  // namespace tosaic::simd
#endif
