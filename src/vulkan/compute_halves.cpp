// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_halves.h"

#include <bit>

#include "base/narrow_float.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tosaic::vulkan {
namespace {

#ifdef __x86_64__
// Every processor with AVX2 has these conversions, too.
const bool has_vectors = __builtin_cpu_supports("avx2");
constexpr std::size_t lanes = 8;

// Two vectors at once, as a device's memory takes few large stores faster than many small ones.
__attribute__((target("avx2,f16c"))) std::size_t narrow_vectors(const float* from, std::size_t count,
                                                                std::uint16_t* to) {
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT),
                  high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + lanes), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_set_m128i(high, low));
  }
  return i;
}

__attribute__((target("avx2,f16c"))) std::size_t widen_vectors(const std::uint16_t* from, std::size_t count,
                                                               float* to) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
#elif defined(__aarch64__)
// Compilers make vectors of these.
constexpr bool has_vectors = true;
std::size_t narrow_vectors(const float* from, std::size_t count, std::uint16_t* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = std::bit_cast<std::uint16_t>(static_cast<__fp16>(from[i]));
  return count;
}
std::size_t widen_vectors(const std::uint16_t* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(std::bit_cast<__fp16>(from[i]));
  return count;
}
#else
constexpr bool has_vectors = false;
std::size_t narrow_vectors(const float*, std::size_t, std::uint16_t*) { return 0; }
std::size_t widen_vectors(const std::uint16_t*, std::size_t, float*) { return 0; }
#endif

}  // namespace

void narrow(const float* from, std::size_t count, std::uint16_t* to) {
  for (std::size_t i = has_vectors ? narrow_vectors(from, count, to) : 0; i < count; ++i) to[i] = Half(from[i]).bits;
}

void widen(const std::uint16_t* from, std::size_t count, float* to) {
  for (std::size_t i = has_vectors ? widen_vectors(from, count, to) : 0; i < count; ++i)
    to[i] = static_cast<float>(Half::from_bits(from[i]));
}

}  // namespace tosaic::vulkan
