// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tosaic::simd {

// Asks for a line of memory that is read soon: it comes to the second-level cache, as the first one is for what is at
// hand. Any address will do.
inline void prefetch(const void* line) {
#if defined(__GNUC__)
  __builtin_prefetch(line, 0, 2);
#else
  (void)line;
#endif
}

}  // namespace tosaic::simd
