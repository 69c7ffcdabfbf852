// SPDX-License-Identifier: Apache-2.0
// The delegates that tosaic has of itself, all of them: linking this links their executors, too. A program that needs
// one takes its table from tosaic/delegate.h.
#pragma once
#include <string>

#include "runtime/delegate.h"

namespace tosaic {

struct DelegateDevices {
  // Where TOSA graphs, VGF files and ExecuTorch's Vulkan graphs run: the CPU, a Vulkan device by compute shaders, or
  // one by the ML extensions (VGF files alone).
  enum class Graphs : std::uint8_t { cpu, vulkan, vulkan_ml } graphs = Graphs::cpu;
  std::string vulkan_device;  // an index, a part of a name, or empty: the best one
  std::string npu;            // the product that a command stream must be made for; empty: any
};

runtime::Delegates all_delegates(const DelegateDevices& devices = {});

}  // namespace tosaic
