// SPDX-License-Identifier: Apache-2.0
// Every file with vector code is compiled once per instruction set and chosen from at run time (Highway's
// foreach_target). Include this before any Highway header: it says which sets there are.
#pragma once
#define HWY_WANT_AVX3_DL 1  // Ice Lake and later: VNNI's int8 dot product
// SSE4, AVX2, AVX-512, AVX-512 with VNNI; NEON; plain code for all others. The sets that later releases of Highway know
// (Zen 4, Sapphire Rapids, NEON with bf16) use the ones below them. Not where only the processor knows how long a
// vector is (SVE, RISC-V): C++ has no arrays of such vectors, and tiles keep their sums in arrays.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_NEON_BF16 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#include <hwy/detect_targets.h>
// Not known to Highway 1.0.
#ifndef HWY_AVX3_ZEN4
#define HWY_AVX3_ZEN4 0
#define HWY_AVX3_SPR 0
#endif
#ifndef HWY_NEON_BF16
#define HWY_NEON_BF16 0
#endif
