// SPDX-License-Identifier: Apache-2.0
// The caller's side of the delegate contract (tosaic/delegate.h). Programs name delegates by id; a method is given the
// ones that it may use, so nothing is registered globally.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/pte/pte_file.h"
#include "ir/tensor.h"
#include "tosaic/delegate.h"

namespace tosaic::runtime {

// Data outside the delegates' payloads, by key: from the program itself or from .ptd files.
using NamedData = std::map<std::string, Bytes>;

// A delegate, and the device that it must run on: the header says what names it; empty: any.
struct DelegateChoice {
  const tosaic_delegate_api* api = nullptr;
  std::string device = {};
  // Where a program passes fewer tensors than the payload has: what may be the reason.
  const char* fewer_tensors_hint = nullptr;
};
using Delegates = std::map<std::string, DelegateChoice>;  // by id

struct DelegateOptions {
  int threads = 0;         // 0: all cores
  bool reference = false;  // the slow loops instead of the fast ones
  bool profile = false;    // keep the time per operation
  std::string name;        // for messages
  const NamedData* data = nullptr;
  std::function<void(const std::string&)> trace;  // one line per operation, where the delegate has operations
  std::function<void(const std::string&)> told;   // a line when it is opened
};

// Calls go through the table of a C interface: what they are given has an address of its own.
struct Listeners {
  std::function<void(const std::string&)> trace, told;
};
using Trace = std::shared_ptr<const Listeners>;

// An open payload.
class OpenDelegate {
 public:
  // The payload and the data stay valid as long as this lives. `status`, when given, is what the delegate returned.
  static Result<OpenDelegate> open(const DelegateChoice& choice, const Bytes& payload,
                                   std::span<const pte::CompileSpec> specs, const DelegateOptions& options,
                                   int* status = nullptr);

  std::span<const tosaic_delegate_tensor_info> inputs() const { return {info_.tensors, info_.input_count}; }
  std::span<const tosaic_delegate_tensor_info> outputs() const {
    return {info_.tensors + info_.input_count, info_.output_count};
  }
  // Of a call, inputs first; null: it has fewer.
  const tosaic_delegate_tensor_info* tensor(std::size_t i) const {
    return i < std::size_t{info_.input_count} + info_.output_count ? &info_.tensors[i] : nullptr;
  }
  std::string device() const { return info_.device; }
  // Are tensors of these types, inputs and then outputs, what the payload takes? Error: delegate.arguments.
  Status check(std::span<const TensorType> types) const;
  // Of the outputs, for these inputs.
  Result<std::vector<Shape>> sizes(std::span<const tosaic_delegate_tensor> inputs);
  Status execute(std::span<const tosaic_delegate_tensor> tensors, int* status = nullptr);
  // An output that stayed with the payload in the last execution.
  Status fetch(std::size_t output, std::span<std::byte> to);
  // What the payload keeps between executions is again what it was when opened.
  Status reset();
  // Another one in that state; nothing: the delegate cannot, opening anew does the same.
  Result<std::optional<OpenDelegate>> clone() const;
  // Keep times from the next execution on.
  Status measure(bool on);
  // Of the last execution.
  tosaic_delegate_profile profile() const;

 private:
  struct Close {
    const tosaic_delegate_api* api;
    const char* fewer_tensors_hint;  // of the choice
    void operator()(tosaic_delegate* delegate) const { api->close(delegate); }
  };
  OpenDelegate(const Close& close, tosaic_delegate* delegate) : delegate_(delegate, close) {}

  static Result<OpenDelegate> of(const Close& close, tosaic_delegate* made, Trace trace);

  Trace trace_;  // the logger's
  std::unique_ptr<tosaic_delegate, Close> delegate_;
  tosaic_delegate_info info_{};
};

}  // namespace tosaic::runtime
