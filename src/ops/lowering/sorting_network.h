// SPDX-License-Identifier: Apache-2.0
// The order of many elements by a bitonic sorting network (Batcher 1968; Knuth, The Art of Computer Programming 3,
// 5.3.4): log2(n)^2 / 2 steps of n elements, where comparing every pair would take n^2.
#pragma once
#include "ops/builder.h"

namespace tosaic {

// Of each row of keys [rows, n], the i32 indices of its elements in order. Equal ones stay in theirs, and NaN is larger
// than infinity, as in PyTorch. Keys are floats or i32.
Val order_by_network(Val keys, bool descending);

}  // namespace tosaic
