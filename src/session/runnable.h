// SPDX-License-Identifier: Apache-2.0
// Something loaded that turns inputs into outputs, again and again: what a Session is inside.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/fixed_value.h"
#include "ir/tensor.h"
#include "tosaic/session.hpp"

namespace tosaic {

// What it takes and gives.
struct Interface {
  std::vector<TensorType> inputs, outputs;
  std::vector<std::string> input_names, output_names;  // may be shorter: the others have none
  std::vector<Tensor> examples;                        // inputs that came with the program
  FixedValues other_inputs;                            // those of the call that are no tensors
  std::string input_tree, output_tree;                 // PyTorch's descriptions of call and result; empty: none
  std::string device;
  std::vector<std::pair<std::string, TensorType>> states;  // what is kept from run to run, by name
};

class Runnable;
using RunnablePtr = std::unique_ptr<Runnable>;

// One class for each way of running, and one for each thing that is done around it (forwarding.h).
class Runnable {
 public:
  explicit Runnable(Interface interface) : interface_(std::move(interface)) {}
  virtual ~Runnable() = default;
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  const Interface& interface() const { return interface_; }
  Interface& interface() { return interface_; }  // for who loads it and knows more

  virtual Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) = 0;
  // Of the last run: those that are no tensors.
  virtual FixedValues other_outputs() const { return {}; }
  // Asked only where there are states. `content` is of the state's type.
  virtual Result<Tensor> state(std::size_t) const { return internal_error("there is no state"); }
  virtual Status set_state(std::size_t, const Tensor&) { return internal_error("there is no state"); }
  // Into the first state; who keeps nothing is always in it.
  virtual Status reset() { return {}; }
  // Another one, in the first state; may be called while `run` is at work. Null: only loading anew makes one.
  virtual Result<RunnablePtr> clone() const { return RunnablePtr(); }
  // Of the last run, by the device's clock; 0: it has none.
  virtual double device_seconds() const { return 0; }
  virtual Status measure(bool) { return {}; }
  // Empty: nothing is known of the parts of a run.
  virtual std::vector<OperationTime> profile() const { return {}; }

 private:
  Interface interface_;
};

}  // namespace tosaic
