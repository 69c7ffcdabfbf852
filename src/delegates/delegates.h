// SPDX-License-Identifier: Apache-2.0
// The delegates that tosaic has of itself, all of them: linking this links their executors, too. A program that needs
// one takes its table from tosaic/delegate.h.
#pragma once
#include <string>

#include "runtime/delegate.h"

namespace tosaic {

struct DelegateDevices {
  bool vulkan = false;        // VGF files run on a Vulkan device instead of the CPU
  std::string vulkan_device;  // an index, a part of a name, or empty: the best one
  std::string npu;            // the product that a command stream must be made for; empty: any
};

runtime::Delegates all_delegates(const DelegateDevices& devices = {});

}  // namespace tosaic
