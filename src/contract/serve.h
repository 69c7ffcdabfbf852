// SPDX-License-Identifier: Apache-2.0
// The delegate's side of the contract for those written in C++: what they share. Arguments are checked, exceptions and
// diagnostics become status codes, the caller's allocator and logger become ours. A delegate is one function that opens
// a payload, and a class that runs it.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/memory.h"
#include "contract/tensors.h"

namespace tosaic::contract {

struct Spec {
  std::string_view key, value;
};

// What the caller lends a payload, as long as it is open.
struct Lent {
  MemorySource memory;                            // empty: the heap
  std::function<void(const std::string&)> trace;  // a line per operation; empty: nobody asks
  // The line about what is opened, by a payload that knows more than its device; likewise.
  std::function<void(const std::string&)> told;
};

// What the caller gave, checked. The views are valid while the payload opens, the payload's bytes until it is closed.
struct Opening : Lent {
  Bytes payload;
  std::string name;
  std::vector<Spec> specs;
  std::function<Bytes(const std::string& key)> data;  // null Bytes: no such key
  int threads = 0;
  bool reference = false, profile = false;
  std::string device;
};

struct Description {
  std::vector<TensorInfo> inputs, outputs;
  std::string device;
};

struct OperationTime {
  std::string name, value, place;
  double seconds = 0;
};

// An open payload.
class Payload {
 public:
  virtual ~Payload() = default;
  // Once, after opening.
  virtual Description describe() const = 0;
  // The outputs' sizes for inputs of these, which the following executions have. Called where the description leaves a
  // choice, before every execution.
  virtual Result<std::vector<Shape>> resize(const std::vector<Shape>& inputs, int& status);
  // The tensors are what the description says. `status` is what a refusal means; FAILED unless it is set.
  virtual Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int& status) = 0;
  // The same for payloads that say TOSAIC_TENSOR_STAYS of an output: by input, 0 or 1 + the number of the output that
  // it is; by output, whether it stays. Their pointers are not to be used.
  virtual Status execute_staying(std::span<const void* const> inputs, std::span<void* const> outputs,
                                 std::span<const std::uint32_t> origins, std::span<const char> stays, int& status);
  // Of the last execution, an output that stayed.
  virtual Status fetch(std::size_t output, std::span<std::byte> to, int& status);
  // Of the last execution by the device's own clock; 0: it has none.
  virtual double device_seconds() const { return 0; }
  virtual std::vector<OperationTime> times() const { return {}; }
  // Keep times from the next execution on.
  virtual void measure(bool) {}
  // The state that it was opened in; many have none.
  virtual void reset() {}
  // Another one in that state, with what does not change shared; null: nothing could be.
  virtual Result<std::unique_ptr<Payload>> clone(const Lent&) const { return std::unique_ptr<Payload>(); }
};

// `status` is what a refusal means; INVALID unless it is set.
using Open = Result<std::unique_ptr<Payload>> (*)(const Opening& opening, const void* user, int& status);

struct Server {
  Open open = nullptr;
  const void* user = nullptr;  // given to `open`
};

// The table of a delegate; `id` and `server` outlive it.
tosaic_delegate_api table(const char* id, const Server& server);

}  // namespace tosaic::contract
