// SPDX-License-Identifier: Apache-2.0
// Every file with vector code is compiled once per instruction set and chosen from at run time (Highway's
// foreach_target). Include this before any Highway header: it says which sets there are.
#pragma once
#define HWY_WANT_AVX3_DL 1              // Ice Lake and later: VNNI's int8 dot product
#define HWY_DISABLED_TARGETS HWY_SSSE3  // SSE4, AVX2, AVX-512, AVX-512 with VNNI, and plain code for all others
