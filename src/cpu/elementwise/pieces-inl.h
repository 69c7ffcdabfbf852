// SPDX-License-Identifier: Apache-2.0
// Functions in 32 pieces (cpu/elementwise/pieces.h), whose numbers are in registers and found by an element's piece,
// for inclusion in files compiled per instruction set. A third of the instructions of one polynomial with an
// exponential.
#if defined(TOSAIC_CPU_PIECES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_PIECES_INL_H
#undef TOSAIC_CPU_PIECES_INL_H
#else
#define TOSAIC_CPU_PIECES_INL_H
#endif
#include <hwy/highway.h>

#include "cpu/elementwise/pieces.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// Only AVX-512 looks up one of 32 numbers in two registers.
#if HWY_TARGET <= HWY_AVX3
template <class Pieces>
HWY_INLINE __m512 in_pieces(__m512 x) {
  constexpr float magic = 12582912.0F;  // 1.5 * 2^23: a number of pieces added to it is in its last bits
  // The second operand passes where it is NaN, and so does the result: u is NaN.
  const __m512 t = _mm512_min_ps(_mm512_set1_ps(Pieces::last), _mm512_abs_ps(x));
  const __m512 shifted = _mm512_fmadd_ps(t, _mm512_set1_ps(1 / Pieces::step), _mm512_set1_ps(magic));
  const __m512 piece = _mm512_sub_ps(shifted, _mm512_set1_ps(magic));
  const __m512 u = _mm512_fnmadd_ps(piece, _mm512_set1_ps(Pieces::step), t);
  const auto number = [&](int row) HWY_ATTR {
    const float* const of = Pieces::table[row];
    return _mm512_permutex2var_ps(_mm512_load_ps(of), _mm512_castps_si512(shifted), _mm512_load_ps(of + 16));
  };
  __m512 q = number(Pieces::degree);
#pragma GCC unroll 8
  for (int row = Pieces::degree - 1; row > 0; --row) q = _mm512_fmadd_ps(q, u, number(row));
  const __mmask16 first = _mm512_cmp_ps_mask(piece, _mm512_setzero_ps(), _CMP_EQ_OQ);
  const __m512 base = _mm512_mask_mov_ps(number(0), first, u);
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0F));
  return _mm512_or_ps(_mm512_fmadd_ps(q, u, base), sign);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
