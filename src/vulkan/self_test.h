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

// `constants`: the device's copy of `program.constants`, which must be there still. What has passed is remembered
// next to the pipeline cache, by driver; TOSAIC_VULKAN_SELF_TEST=always checks everything anew, =never nothing. Errors:
// vulkan.wrong-result, vulkan.ambiguous-shader (no driver can be right), vulkan.lost, vulkan.memory, vulkan.failed.
// Under device->building. `told`: is given a line where shaders were left unchecked, as computing them here would take
// too long; they are not remembered.
Status self_test(const std::shared_ptr<Device>& device, const vulkan_program::Program& program,
                 const vulkan_program::Tier& tier, const Pipelines& pipelines, const Constants& constants,
                 const std::function<void(const std::string&)>& told = {});

// Instructions that are computed here for all shaders of a program together, some seconds: what shaders do, any payload
// says. Of ours ResNet-18 takes a fiftieth. A test lowers it.
inline std::uint64_t most_self_test_steps = 500000000;

}  // namespace tosaic::vulkan
