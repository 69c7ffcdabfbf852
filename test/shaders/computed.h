// SPDX-License-Identifier: Apache-2.0
// A program's shaders computed instruction by instruction, of any tier and without a device. What no device may be
// asked, as each of them answers in its own way, is seen here: two invocations that store different numbers in one
// place, and what SPIR-V does not define.
#pragma once
#include "shaders/on_device.h"

namespace tosaic::test {

class Computed {
 public:
  // Of one tier.
  explicit Computed(vulkan_program::Program program);
  const vulkan_program::Tier& tier() const { return program_.tiers.at(0); }
  bool has_matrices() const;

  // What is not defined is a failure of the test.
  void run(const std::vector<Tensor>& inputs);
  Tensor output(std::size_t i) const;

 private:
  void dispatch(const vulkan_program::Dispatch& d);

  vulkan_program::Program program_;
  std::vector<std::byte> memories_[3];
};

// Every tier computes what the interpreter does, here and on the device.
void expect_of_every_tier(const Net& net, const Tolerance& tolerance, const std::string& what,
                          shaders::Precision precision = shaders::Precision::fp32);

}  // namespace tosaic::test
