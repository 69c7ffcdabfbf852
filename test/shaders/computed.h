// SPDX-License-Identifier: Apache-2.0
// A program's shaders computed instruction by instruction, of any tier and without a device. What no device may be
// asked, as each of them answers in its own way, is seen here: two invocations that store different numbers in one
// place, and what SPIR-V does not define.
#pragma once
#include <array>
#include <functional>

#include "formats/spirv/spirv.h"
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

// The tier computes what the interpreter does, by matrices of subgroups or not.
void expect_matrices(const Net& net, vulkan_program::TierId tier, const Tolerance& tolerance, bool matrices,
                     shaders::Precision precision = shaders::Precision::fp32);
// So does it for depthwise convolutions behind plain ones of so many channels, each pair in a dispatch.
void expect_behind_plain(vulkan_program::TierId tier, DType type, const std::array<std::int64_t, 3>& channels,
                         const Tolerance& tolerance);
// What check_shader says of the modules with matrices, in each of which the first instruction is changed that `change`
// says it has changed.
std::string said_of_changed(const vulkan_program::Tier& tier,
                            const std::function<bool(spirv::Opcode op, spirv::Word* operands)>& change);

}  // namespace tosaic::test
