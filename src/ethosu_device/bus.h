// SPDX-License-Identifier: Apache-2.0
// Memory as the host gives it: pointers to it, or copies that are read before a run and written after it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ethosu/machine.h"
#include "tosaic/ethosu_device.h"

namespace tosaic::ethosu_device {

// The regions of one run: where they begin on the bus, how much of each the commands reach, which they write.
struct Wanted {
  std::array<std::uint64_t, ethosu::max_regions> base{};
  ethosu::Requirements requirements;
};

class Bus {
 public:
  explicit Bus(const tosaic_ethosu_host& host) : host_(host) {}
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus() { give_back(); }

  bool read(std::uint64_t address, void* to, std::uint64_t bytes);

  // A region where the bus has no memory, or too little, is as short as that.
  ethosu::Regions map(const Wanted& wanted);
  // After the run: copies are written, pointers given back. The region that could not be written, if any.
  std::optional<int> finish();

 private:
  // Regions that overlap share one copy.
  struct Copy {
    std::uint64_t address = 0;
    std::vector<std::byte> bytes;
  };
  struct Mapped {
    std::uint64_t address = 0, bytes = 0;
    void* memory = nullptr;
    bool written = false;
  };
  void map_copies(const Wanted& wanted, ethosu::Regions& regions);
  ethosu::Region map_memory(std::uint64_t address, std::uint64_t bytes, bool written);
  void give_back();

  const tosaic_ethosu_host& host_;
  std::vector<Mapped> mapped_;
  std::vector<Copy> copies_;
  ethosu::Regions regions_{};
  Wanted wanted_;
};

}  // namespace tosaic::ethosu_device
