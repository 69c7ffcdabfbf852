// SPDX-License-Identifier: Apache-2.0
// A runnable around another one: whoever does something to its runs derives from this, and says only that.
#pragma once
#include "session/runnable.h"

namespace tosaic {

class Forwarding : public Runnable {
 public:
  Forwarding(Interface interface, RunnablePtr inner) : Runnable(std::move(interface)), inner_(std::move(inner)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return inner_->run(inputs); }
  FixedValues other_outputs() const override { return inner_->other_outputs(); }
  Result<Tensor> state(std::size_t i) const override { return inner_->state(i); }
  Status set_state(std::size_t i, const Tensor& content) override { return inner_->set_state(i, content); }
  Status reset() override { return inner_->reset(); }
  Result<RunnablePtr> clone() const final {
    TOSAIC_TRY(RunnablePtr made, inner_->clone());
    return made ? around(std::move(made)) : RunnablePtr();
  }
  double device_seconds() const override { return inner_->device_seconds(); }
  Status measure(bool on) override { return inner_->measure(on); }
  std::vector<OperationTime> profile() const override { return inner_->profile(); }

 private:
  // The same around another one, in the first state.
  virtual RunnablePtr around(RunnablePtr inner) const = 0;

  RunnablePtr inner_;
};

}  // namespace tosaic
