// SPDX-License-Identifier: Apache-2.0
// Memory that several methods of one program read and write: the buffers that they keep together from run to run.
// ExecuTorch's programs place these in the second arena, at one offset in every method, and the first one is each
// method's own.
#pragma once
#include <atomic>
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
  // One whose delegates may keep newer content of the buffers than this memory has.
  class Keeper {
   public:
    virtual Status bring_back() = 0;
    virtual void let_go() = 0;  // memory will have what is newest

   protected:
    ~Keeper() = default;
  };
  void kept_by(Keeper* keeper);
  // Before that one reads or writes the buffers: another one brings back what it keeps. Errors: of a lost device.
  Status claim(const Keeper* by);
  // It ends: nothing that it keeps is lost.
  void leave(const Keeper* keeper);
  // Every buffer is again what it was at first.
  void reset();
  // Another one, as at first.
  Result<std::shared_ptr<SharedMemory>> fresh() const;

 private:
  Status make();
  std::shared_ptr<std::byte> start_;
  std::size_t bytes_ = 0;
  std::vector<std::pair<std::uint64_t, Bytes>> contents_;  // at first, where these are not zeros
  Keeper* keeper_ = nullptr;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;  // with the keeper: a method may end while another one begins to run
};

}  // namespace tosaic::runtime
