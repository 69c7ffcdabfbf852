// SPDX-License-Identifier: Apache-2.0
// Packed weights that are in use: what the same memory is packed to exists once.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tosaic::cpu {

template <class Packed>
class PackedOnce {
 public:
  struct Source {
    const void* memory;  // which stays, and what it is, as long as anybody has what was made of it
    std::int64_t n, k;
    std::int64_t form = 0;  // of the packed: what else decides how it looks
    auto operator<=>(const Source&) const = default;
  };

  // Made by `pack` where nobody has it.
  template <class Pack>
  std::shared_ptr<Packed> at(const Source& source, Pack&& pack) {
    const std::lock_guard lock(mutex_);
    if (const auto found = packed_.find(source); found != packed_.end())
      if (auto known = found->second.lock()) return known;
    std::erase_if(packed_, [](const auto& entry) { return entry.second.expired(); });
    std::shared_ptr<Packed> made = pack();
    packed_[source] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<Source, std::weak_ptr<Packed>> packed_;
};

struct PackedI8;
struct PackedWeights {
  PackedOnce<float[]> floats;
  PackedOnce<const PackedI8> integers;
};

}  // namespace tosaic::cpu
