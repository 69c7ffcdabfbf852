// SPDX-License-Identifier: Apache-2.0
// Does this driver compute what the shaders of a program say? Each module that was not checked on it before runs once,
// in the smallest of its dispatches, on numbers made up for it; some invocations of it are computed here as well
// (formats/spirv/compute/run_shader.h), and must have given the same.
#pragma once
#include <functional>
#include <string>

#include "vulkan/compute_constants.h"
#include "vulkan/compute_pipelines.h"

namespace tosaic::vulkan {

// What has passed is remembered next to the pipeline cache, by driver; TOSAIC_VULKAN_SELF_TEST=always checks everything
// anew, =never nothing. Under device->building, and while the program's constants are there.
class SelfTest {
 public:
  SelfTest(const std::shared_ptr<Device>& device, const vulkan_program::Program& program,
           const vulkan_program::Tier& tier);
  ~SelfTest();
  SelfTest(const SelfTest&) = delete;
  SelfTest& operator=(const SelfTest&) = delete;

  // The host's part, which needs no pipelines: for any threads, in any order, before `finish`.
  std::vector<std::function<void()>> tasks();
  // `constants`: the device's copy of the program's. Errors: vulkan.wrong-result, vulkan.ambiguous-shader (no driver
  // can be right), vulkan.lost, vulkan.memory, vulkan.failed. `told`: is given a line where shaders were left
  // unchecked, as computing them here would take too long; they are not remembered.
  Status finish(const Pipelines& pipelines, const Constants& constants,
                const std::function<void(const std::string&)>& told = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Instructions that are computed here for all shaders of a program together, some seconds: what shaders do, any payload
// says. Of ours ResNet-18 takes a fiftieth. A test lowers it.
inline std::uint64_t most_self_test_steps = 500000000;

}  // namespace tosaic::vulkan
