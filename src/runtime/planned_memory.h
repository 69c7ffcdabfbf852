// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a method lie: in its arenas as the program plans it, and what has no place there by itself.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cells.h"
#include "runtime/delegate.h"
#include "runtime/shared_memory.h"

namespace tosaic::runtime {

class PlannedMemory {
 public:
  // `shared`: one of the arenas; null: none is.
  explicit PlannedMemory(std::shared_ptr<SharedMemory> shared) : shared_(std::move(shared)) {}

  const std::shared_ptr<SharedMemory>& shared() const { return shared_; }
  // Makes the cells of all values. Errors: method.memory, method.external-data.
  Status place(const pte::Plan& plan, const NamedData& data, Cells& cells);
  // What the tensors held then.
  void reset();

 private:
  struct Block {
    std::shared_ptr<std::byte> start;
    std::size_t bytes = 0;
  };
  Result<std::byte*> reserve(std::uint64_t bytes, const pte::Plan& plan);
  Status place_tensor(const pte::TensorValue& tensor, const pte::Plan& plan, const NamedData& data, Cell& cell);

  std::shared_ptr<SharedMemory> shared_;
  std::vector<Block> blocks_;                      // the arenas, then tensors that have no place there
  std::vector<std::pair<void*, Bytes>> contents_;  // of tensors in memory, at first
  std::vector<Bytes> constants_;                   // kept alive
  std::uint64_t wanted_bytes_ = 0;                 // of all blocks
};

}  // namespace tosaic::runtime
