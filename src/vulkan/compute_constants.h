// SPDX-License-Identifier: Apache-2.0
// What a program reads and never writes, on its device. Large stretches that are equal lie there once, whichever
// programs of this process read them: methods of one file, sizes of one program, a file that is loaded twice.
#pragma once
#include <memory>
#include <vector>

#include "vulkan/compute_commands.h"
#include "vulkan/compute_memory.h"

namespace tosaic::vulkan {

class Constants {
 public:
  Constants() = default;
  // Those that the dispatches of the tier read; nothing is taken yet.
  explicit Constants(const vulkan_program::Tier& tier);
  std::uint64_t bytes() const;
  // `content`: the program's memory of constants. Under device->building. Errors: vulkan.memory, vulkan.lost,
  // vulkan.failed.
  Status upload(const std::shared_ptr<Device>& device, const Rope& content);
  // Where a dispatch's range of constants lies.
  BoundRange at(const vulkan_program::Range& range) const;

 private:
  // Ranges that overlap are in one stretch: none is in two.
  struct Stretch {
    std::uint64_t begin, end;  // in the program's memory of constants
    std::shared_ptr<DeviceBuffer> buffer;
    std::uint64_t offset = 0;  // in the buffer
  };
  class Batch;
  std::vector<Rope> contents_of_stretches(const Rope& content) const;
  std::vector<Stretch> stretches_;  // in order
};

}  // namespace tosaic::vulkan
