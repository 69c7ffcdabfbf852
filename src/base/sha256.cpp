// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tosaic {
namespace {

using Word = std::uint32_t;
constexpr std::size_t block_bytes = 64;

// The standard's constants are the first 32 bits of the fractional parts of roots of the first primes.
template <std::size_t n>
std::array<Word, n> fractions_of_roots(long double (*root)(long double)) {
  std::array<Word, n> result{};
  std::size_t found = 0;
  for (int candidate = 2; found < n; ++candidate) {
    bool prime = true;
    for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
    if (!prime) continue;
    const long double value = root(candidate);
    result[found++] = static_cast<Word>((value - std::floor(value)) * 4294967296.0L);
  }
  return result;
}

void absorb(std::array<Word, 8>& state, const unsigned char* block) {
  static const auto round_constants = fractions_of_roots<64>([](long double x) { return std::cbrt(x); });
  std::array<Word, 64> w;
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = static_cast<Word>(block[4 * i]) << 24 | static_cast<Word>(block[4 * i + 1]) << 16 |
           static_cast<Word>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const Word a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const Word first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    const Word second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<Word, 8> mixed{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256(std::string_view message) {
  auto state = fractions_of_roots<8>([](long double x) { return std::sqrt(x); });
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  std::size_t left = message.size();
  for (; left >= block_bytes; bytes += block_bytes, left -= block_bytes) absorb(state, bytes);
  // What is left, a one bit, zeros, and the message's length in bits: one block or two.
  std::array<unsigned char, 2 * block_bytes> tail{};
  std::copy_n(bytes, left, tail.begin());
  tail[left] = 0x80;
  const std::size_t blocks = left + 9 > block_bytes ? 2 : 1;
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) tail[blocks * block_bytes - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (std::size_t i = 0; i < blocks; ++i) absorb(state, tail.data() + i * block_bytes);
  std::string text;
  for (Word word : state) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace tosaic
