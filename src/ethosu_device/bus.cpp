// SPDX-License-Identifier: Apache-2.0
#include "ethosu_device/bus.h"

#include <algorithm>
#include <cstring>

namespace tosaic::ethosu_device {

bool Bus::read(std::uint64_t address, void* to, std::uint64_t bytes) {
  if (!host_.memory) return host_.read(host_.user, address, to, bytes) == 0;
  std::uint64_t there = bytes;
  void* const from = host_.memory(host_.user, address, &there, 0);
  if (from && there >= bytes) std::memcpy(to, from, bytes);
  if (from && host_.release) host_.release(host_.user, address, from, there, 0);
  return from && there >= bytes;
}

ethosu::Region Bus::map_memory(std::uint64_t address, std::uint64_t bytes, bool written) {
  std::uint64_t there = bytes;
  void* memory = host_.memory(host_.user, address, &there, written ? 1 : 0);
  // Memory that is there and cannot be written: the run says what wanted to.
  if (!memory && written) {
    written = false;
    there = bytes;
    memory = host_.memory(host_.user, address, &there, 0);
  }
  if (!memory) return {};
  mapped_.push_back({address, there, memory, written});
  return {static_cast<std::byte*>(memory), std::min(there, bytes), written};
}

void Bus::map_copies(const Wanted& wanted, ethosu::Regions& regions) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (const std::uint64_t bytes = wanted.requirements.region_bytes[i])
      spans.emplace_back(wanted.base[i], wanted.base[i] + bytes);
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 0; i < spans.size();) {
    auto [begin, end] = spans[i];
    for (++i; i < spans.size() && spans[i].first < end; ++i) end = std::max(end, spans[i].second);
    Copy copy{begin, std::vector<std::byte>(static_cast<std::size_t>(end - begin))};
    if (host_.read(host_.user, begin, copy.bytes.data(), end - begin) == 0) copies_.push_back(std::move(copy));
  }
  for (std::size_t i = 0; i < regions.size(); ++i)
    for (Copy& copy : copies_) {
      const std::uint64_t bytes = wanted.requirements.region_bytes[i], base = wanted.base[i];
      if (bytes && base >= copy.address && base + bytes <= copy.address + copy.bytes.size())
        regions[i] = {copy.bytes.data() + (base - copy.address), bytes, wanted.requirements.written[i]};
    }
}

ethosu::Regions Bus::map(const Wanted& wanted) {
  wanted_ = wanted;
  regions_ = {};
  if (!host_.memory) {
    map_copies(wanted, regions_);
  } else {
    for (std::size_t i = 0; i < regions_.size(); ++i)
      if (wanted.requirements.region_bytes[i])
        regions_[i] = map_memory(wanted.base[i], wanted.requirements.region_bytes[i], wanted.requirements.written[i]);
  }
  return regions_;
}

std::optional<int> Bus::finish() {
  std::optional<int> failed;
  if (!host_.memory)
    for (std::size_t i = 0; i < regions_.size(); ++i)
      if (regions_[i].writable && !failed &&
          host_.write(host_.user, wanted_.base[i], regions_[i].base, regions_[i].bytes) != 0)
        failed = static_cast<int>(i);
  give_back();
  return failed;
}

void Bus::give_back() {
  if (host_.release)
    for (const Mapped& m : mapped_) host_.release(host_.user, m.address, m.memory, m.bytes, m.written ? 1 : 0);
  mapped_.clear();
  copies_.clear();
  regions_ = {};
}

}  // namespace tosaic::ethosu_device
