// SPDX-License-Identifier: Apache-2.0
// Memory that several methods of one program read and write: the buffers that they keep together from run to run.
// ExecuTorch's programs place these in the second arena, at one offset in every method, and the first one is each
// method's own.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/pte/pte_file.h"

namespace tosaic::runtime {

class SharedMemory {
 public:
  // Null: the methods of the program share nothing. Error: method.memory.
  static Result<std::shared_ptr<SharedMemory>> of(const pte::Program& program);

  static constexpr std::size_t arena = 1;  // among the arenas of a plan
  const std::shared_ptr<std::byte>& start() const { return start_; }
  std::size_t bytes() const { return bytes_; }
  // Every buffer is again what it was at first.
  void reset();
  // Another one, as at first.
  Result<std::shared_ptr<SharedMemory>> fresh() const;

 private:
  Status make();
  std::shared_ptr<std::byte> start_;
  std::size_t bytes_ = 0;
  std::vector<std::pair<std::uint64_t, Bytes>> contents_;  // at first, where these are not zeros
};

}  // namespace tosaic::runtime
