// SPDX-License-Identifier: Apache-2.0
// A payload that ExecuTorch has loaded: what its handle points to.
#pragma once
#include <executorch/runtime/backend/interface.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "options.h"
#include "tosaic/delegate.h"

namespace tosaic::plugin {

class Opened {
 public:
  // Null: `error` says why, and the log in words.
  static std::unique_ptr<Opened> open(const tosaic_delegate_api* api, const Options& options,
                                      executorch::runtime::BackendInitContext& context,
                                      const executorch::runtime::FreeableBuffer& payload,
                                      executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> specs,
                                      executorch::runtime::Error& error);
  ~Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  executorch::runtime::Error execute(executorch::runtime::BackendExecutionContext& context,
                                     executorch::runtime::Span<executorch::runtime::EValue*> values);

 private:
  using Error = executorch::runtime::Error;
  explicit Opened(const tosaic_delegate_api* table) : api_(table) {}
  Error execute_alone(executorch::runtime::BackendExecutionContext& context,
                      executorch::runtime::Span<executorch::runtime::EValue*> values);
  Error describe();
  Error ask_sizes();
  Error take(std::size_t i, executorch::runtime::EValue& value);
  Error refused(int status, const tosaic_delegate_error& why) const;
  Error refused(const std::string& message) const;
  void trace(executorch::runtime::EventTracer& tracer, std::uint64_t begin) const;
  static int look_up(void* user, const char* key, const void** data, std::size_t* bytes);

  const tosaic_delegate_api* api_;
  std::string name_;  // "forward (TOSABackend)"
  const executorch::runtime::NamedDataMap* named_ = nullptr;
  std::vector<executorch::runtime::FreeableBuffer> data_;  // what was looked up stays until the payload is closed
  tosaic_delegate* delegate_ = nullptr;
  tosaic_delegate_info info_{};
  bool bounded_ = false;  // memory is from the method's allocator
  bool measured_ = false;
  bool varies_ = false;  // the outputs' sizes depend on the inputs'
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // Of a call: made once, so that calls take no memory.
  std::vector<tosaic_delegate_tensor> tensors_;
  std::vector<std::vector<std::int64_t>> dims_;
  std::vector<std::vector<std::int64_t>> sizes_;  // the outputs'
};

}  // namespace tosaic::plugin
