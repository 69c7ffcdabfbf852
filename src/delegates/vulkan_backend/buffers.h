// SPDX-License-Identifier: Apache-2.0
// Buffers that a payload keeps from one execution to the next, around one that knows only inputs and outputs.
#pragma once
#include <memory>
#include <vector>

#include "contract/serve.h"
#include "ir/states.h"

namespace tosaic::delegates {

class Buffers {
 public:
  // What the states of `graph`, by now the last of its inputs, hold at first.
  Buffers(const StatesAsTensors& states, const Graph& graph);
  explicit Buffers(std::vector<std::vector<std::byte>> first) : first_(std::move(first)) { reset(); }

  void reset();
  // Others with the content at first.
  std::shared_ptr<Buffers> fresh() const { return std::make_shared<Buffers>(first_); }
  // Executes `inner` on what they hold; what it gives is held from then on, unless it fails.
  Status execute(contract::Payload& inner, std::span<const void* const> inputs, std::span<void* const> outputs,
                 int& status);
  std::size_t count() const { return first_.size(); }

 private:
  std::vector<std::vector<std::byte>> first_, now_, next_;
};

// Payloads with the same `buffers` see each other's writes.
std::unique_ptr<contract::Payload> keeping(std::unique_ptr<contract::Payload> inner, std::shared_ptr<Buffers> buffers);

}  // namespace tosaic::delegates
