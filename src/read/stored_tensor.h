// SPDX-License-Identifier: Apache-2.0
// A tensor as PyTorch stores it: a storage, of which sizes, strides and an offset (all in elements) choose the
// elements. Storages are larger than their tensors when a slice was saved. Private to read/.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/type.h"

namespace tosaic {

struct StoredTensor {
  Bytes storage;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
};

// Sizes that a tensor can have: not negative, and their product small enough to count bytes. Throws ReadError
// pt2.bad-shape; `what` names the tensor.
void check_sizes(const std::vector<std::int64_t>& sizes, const std::string& what);

// The elements dense and row-major: a view of the storage when they lie there so, else a copy. Never null.
// Throws pt2.tensor-beyond-record when the storage is too small.
Bytes dense(const StoredTensor& tensor, const std::string& what);

}  // namespace tosaic
