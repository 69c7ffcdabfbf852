// SPDX-License-Identifier: Apache-2.0
// What drivers take of the process and do not ask for: those of CPU devices start threads and compile, and where the
// system refuses them a thread or memory they wait for ever or end the process.
#pragma once
#include "base/result.h"

namespace tosaic::vulkan {

// Can so much be had now? Asked once, before the first driver is opened. Error vulkan.memory.
Status has_means_for_drivers();

}  // namespace tosaic::vulkan
