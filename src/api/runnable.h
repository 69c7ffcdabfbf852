// SPDX-License-Identifier: Apache-2.0
// Something loaded that turns inputs into outputs, again and again: what a Session is inside.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/named_data.h"
#include "ir/fixed_value.h"
#include "ir/tensor.h"
#include "read/pt2.h"
#include "runtime/shared_memory.h"
#include "tosaic/session.hpp"

namespace tosaic {

struct Runnable {
  std::vector<TensorType> inputs, outputs;
  std::vector<std::string> input_names, output_names;  // may be shorter: the others have none
  std::vector<Tensor> examples;                        // inputs that came with the program
  FixedValues other_inputs;                            // those of the call that are no tensors
  std::string input_tree, output_tree;                 // PyTorch's descriptions of call and result; empty: none
  std::string device;
  std::function<double()> device_seconds;  // of the last run; empty: the device has no clock
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>&)> run;
  std::function<FixedValues()> other_outputs;  // those of the last run that are no tensors; empty: there are none
  // What is kept from run to run, by name.
  std::vector<std::pair<std::string, TensorType>> states;
  std::function<Tensor(std::size_t i)> state;
  std::function<Status(std::size_t i, const Tensor& content)> set_state;  // of that type
  // Empty: loading anew does the same.
  std::function<Status()> reset;
  std::function<Result<Runnable>()> clone;  // may be called while `run` is at work
  // Empty: nothing is known of the parts of a run.
  std::function<Status(bool on)> measure;
  std::function<std::vector<OperationTime>()> profile;
};

// What sessions of the methods of one program have in common.
struct Together {
  std::atomic<bool> busy{false};  // one of them runs
  std::vector<std::string> methods;
  std::shared_ptr<runtime::SharedMemory> memory;  // null: they keep nothing together
};

// What to load: the file by any of its forms.
struct Source {
  std::string name;                // of the file in messages
  Bytes file;                      // .pte, .tosa, .vgf, .pt2 or graph text; or
  std::optional<Program> program;  // one that was read already
  std::vector<NamedFile> data;
  std::shared_ptr<Together> together = std::make_shared<Together>();  // filled by the first of them that is loaded
};

// Errors: run.unknown-format, run.device, those of the formats, delegates and kernels.
Result<Runnable> load_runnable(const Source& source, const SessionOptions& options, const Sink& sink);

}  // namespace tosaic
