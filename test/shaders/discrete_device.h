// SPDX-License-Identifier: Apache-2.0
// A GPU with memory of its own, made of this machine's CPU device: its types of memory are replaced, and what is done
// with them is kept. Memory that the host does not cache is for the host another one than for the device: what the host
// writes there arrives with the next submission, and what the device writes there the host never sees. A result that
// was read from it is wrong.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "shaders/faulty_device.h"

namespace tosaic::test {

// In the order of NVIDIA's drivers; `both` is the device's own where the host writes to it, and may be missing.
enum MemoryType : std::uint32_t { device_only, uncached, cached, both, type_count };

struct DiscreteDevice {
  struct Piece {
    MemoryType type = device_only;
    VkDeviceSize bytes = 0;
    std::byte* real = nullptr;
    std::vector<std::byte> hosts;  // of memory that is not cached: what the host sees
  };
  struct Copy {
    MemoryType from = device_only, to = device_only;
    VkDeviceSize bytes = 0;
    bool operator==(const Copy&) const = default;
  };
  VolkDeviceTable real{};
  std::map<VkDeviceMemory, Piece> pieces;
  std::map<VkBuffer, MemoryType> buffers;
  std::vector<Copy> copies;  // that were recorded
  std::set<MemoryType> mapped;
  VkDeviceSize taken[type_count] = {}, most_taken[type_count] = {};
  VkDeviceSize room_in_both = 256 << 20;
  int looks = 0, waits = 0;  // at a fence, and for it
  bool busy = false;         // whoever looks at a fence finds it not done yet
};

class OnDiscreteDevice : public OnFaultyDevice {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Opened anew, with `both` or without; this takes the place of the device of before.
  void open(bool has_both);
  static DiscreteDevice gpu;
  std::shared_ptr<vulkan::Device> made;
};

}  // namespace tosaic::test
