// SPDX-License-Identifier: Apache-2.0
// Whether elements may be read where they lie: constants of a mapped file, and what users give, may lie at any byte.
#pragma once
#include <cstdint>

#include "ir/type.h"

namespace tosaic {

inline bool aligned_for(const TensorType& type, const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % storage_size(type.dtype) == 0;
}

}  // namespace tosaic
