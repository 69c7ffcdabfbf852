// SPDX-License-Identifier: Apache-2.0
// The values of a running method: tensors are locations in memory, everything else is itself.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/tensor.h"

namespace tosaic::runtime {

struct TensorCell {
  TensorType type;                      // logical sizes
  std::vector<std::uint8_t> dim_order;  // empty: row-major
  void* data = nullptr;                 // elements in the order of dim_order; constants are never written
  bool constant = false;
  bool varies = false;  // of sizes up to those that the program says
};

struct Cell {
  pte::Value value;  // numbers, strings and lists; None for tensors
  TensorCell tensor;
  bool is_tensor = false;
};
using Cells = std::vector<Cell>;
// The program counts its values with this type.
inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// The elements in row-major order: the cell's own memory, or `space` filled from it.
const void* dense(const TensorCell& cell, std::vector<std::byte>& space);
// Stores row-major elements into the cell.
void store_dense(const TensorCell& cell, const void* elements);

}  // namespace tosaic::runtime
