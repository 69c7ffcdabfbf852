// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_readback.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/system/clock.h"
#include "base/system/thread_pool.h"
#include "ir/extent.h"
#include "vulkan/call.h"
#include "vulkan/compute_arrivals.h"
#include "vulkan/compute_halves.h"

namespace tosaic::vulkan {
namespace {

using Clock = SteadyClock;

// At which the bus is the slower one.
constexpr unsigned most_copying_threads = 6;
// What one thread copies at a time; and of how little it copies all by itself, as waking the others takes longer.
constexpr std::size_t share = 64 << 10, few = 768 << 10;
constexpr std::size_t few_to_come = 512 << 10;  // where they have the time of the device's copy to wake up
constexpr std::size_t waits = 4;                // of the host for the device's copies
constexpr double longest_copy_seconds = 0.1;    // of all that is large, once it has begun

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

ThreadPool& copying() {
  static const unsigned threads = std::clamp(hardware_threads() / 2, 2u, most_copying_threads);
  return ThreadPool::shared(static_cast<int>(threads));
}

namespace {

// Bytes of the device's memory from `begin` on.
void write_part(std::byte* to, const void* from, std::size_t begin, std::size_t bytes, bool is_narrow) {
  if (is_narrow)
    narrow(static_cast<const float*>(from) + begin / 2, bytes / 2, reinterpret_cast<std::uint16_t*>(to + begin));
  else if (bytes)
    std::memcpy(to + begin, static_cast<const std::byte*>(from) + begin, bytes);
}
void read_part(void* to, const std::byte* from, std::size_t begin, std::size_t bytes, bool is_narrow) {
  if (is_narrow)
    widen(reinterpret_cast<const std::uint16_t*>(from + begin), bytes / 2, static_cast<float*>(to) + begin / 2);
  else if (bytes)
    std::memcpy(static_cast<std::byte*>(to) + begin, from + begin, bytes);
}

template <class Part>
void copy_parts(std::size_t bytes, bool is_narrow, const Part& part) {
  const std::size_t at_once = is_narrow ? share / 2 : share;
  if (bytes <= (is_narrow ? few / 2 : few)) return part(0, bytes);
  copying().run(static_cast<std::int64_t>((bytes + at_once - 1) / at_once), [&](std::int64_t i, int) {
    const std::size_t begin = static_cast<std::size_t>(i) * at_once;
    part(begin, std::min(at_once, bytes - begin));
  });
}

}  // namespace

void copy_to_device(std::byte* to, const void* from, std::size_t bytes, bool is_narrow) {
  copy_parts(bytes, is_narrow,
             [&](std::size_t begin, std::size_t count) { write_part(to, from, begin, count, is_narrow); });
}
void copy_to_caller(void* to, const std::byte* from, std::size_t bytes, bool is_narrow) {
  copy_parts(bytes, is_narrow,
             [&](std::size_t begin, std::size_t count) { read_part(to, from, begin, count, is_narrow); });
}

std::vector<char> outputs_for_host(const vulkan_program::Program& program, const vulkan_program::Tier& tier) {
  using vulkan_program::Arena;
  constexpr std::uint64_t small = 64 << 10;
  struct Place {
    std::uint64_t begin, end;
    bool overlaps(const Place& other) const { return begin < other.end && other.begin < end; }
  };
  const auto place_of = [](const vulkan_program::Tensor& t) { return Place{t.offset, t.offset + bytes_in_io(t)}; };
  std::uint64_t all = 0;
  for (const vulkan_program::Tensor& t : program.outputs) all += place_of(t).end - place_of(t).begin;
  std::vector<char> may(program.outputs.size(), 0);
  for (std::size_t i = 0; i < may.size() && all <= small; ++i) {
    const Place mine = place_of(program.outputs[i]);
    may[i] = std::ranges::none_of(program.inputs, [&](const auto& t) { return mine.overlaps(place_of(t)); });
    for (std::size_t other = 0; other < may.size(); ++other)
      if (other != i && mine.overlaps(place_of(program.outputs[other]))) may[i] = 0;
    for (const vulkan_program::Dispatch& d : tier.dispatches)
      for (const vulkan_program::Range& r : d.ranges)
        if (r.arena == Arena::io && mine.overlaps({r.offset, r.offset + r.bytes}) &&
            (!r.written || r.view != vulkan_program::View::buffer || r.offset < mine.begin))
          may[i] = 0;
  }
  return may;
}

Status Readback::make(VkDeviceSize bytes) {
  TOSAIC_TRY(memory_, DeviceBuffer::make(device_, bytes, Placement::readback));
  if (bytes <= few_to_come / 2) return {};
  const auto& vk = device_->vk;
  for (std::size_t i = 0; i <= waits; ++i) {
    const VkEventCreateInfo info{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event = VK_NULL_HANDLE;
    // Not every device has them.
    if (vk.vkCreateEvent(device_->handle, &info, nullptr, &event) != VK_SUCCESS) break;
    undo_.later([this, event] { device_->vk.vkDestroyEvent(device_->handle, event, nullptr); });
    events_.push_back(event);
  }
  if (events_.size() <= waits) events_.clear();
  return {};
}

// Parts of one event are as many bytes as those of another one, but for the last.
void Readback::divide() {
  parts_.clear();
  std::size_t all = 0;
  std::size_t of_caller = 0;
  for (const ReadPlace& p : places_)
    if (!p.there) all += p.bytes, of_caller += p.narrow ? 2 * p.bytes : p.bytes;
  if (of_caller <= few_to_come || events_.empty()) return;
  const std::size_t of_event = (all + waits - 1) / waits;
  std::size_t before = 0;
  for (std::size_t place = 0; place < places_.size(); ++place)
    for (std::size_t begin = 0; begin < places_[place].bytes;) {
      const std::size_t event = before / of_event, most = places_[place].narrow ? share / 2 : share;
      std::size_t bytes = std::min({most, places_[place].bytes - begin, (event + 1) * of_event - before});
      if (places_[place].narrow) bytes += bytes % 2;  // whole numbers
      parts_.push_back({place, begin, bytes, event + 1});
      begin += bytes;
      before += bytes;
    }
}

void Readback::begin(std::vector<ReadPlace> places) {
  places_ = std::move(places);
  divide();
}

void Readback::announce(const Commands& commands) const {
  if (!parts_.empty()) device_->vk.vkCmdSetEvent(commands.handle, events_[0], VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
}

void Readback::record(const Commands& commands, VkBuffer io) const {
  if (std::ranges::any_of(places_, &ReadPlace::there)) commands.barrier(shader_writes, host_reads);
  if (std::ranges::all_of(places_, [](const ReadPlace& p) { return p.there || !p.bytes; })) return;
  commands.barrier(shader_writes, copy_reads);
  if (parts_.empty()) {
    for (const ReadPlace& p : places_)
      if (p.bytes && !p.there) commands.copy(io, handle(), {p.offset, p.offset, p.bytes});
    commands.barrier(copy_writes, host_reads);
    return;
  }
  const auto set = [&](std::size_t event) {
    device_->vk.vkCmdSetEvent(commands.handle, events_[event], VK_PIPELINE_STAGE_TRANSFER_BIT);
  };
  for (std::size_t i = 0; i < parts_.size();) {
    const Part first = parts_[i];
    std::size_t bytes = 0;
    for (; i < parts_.size() && parts_[i].event == first.event && parts_[i].place == first.place; ++i)
      bytes += parts_[i].bytes;
    const VkDeviceSize at = places_[first.place].offset + first.begin;
    commands.copy(io, handle(), {at, at, bytes});
    if (i < parts_.size() && parts_[i].event == first.event) continue;
    commands.barrier(copy_writes, host_reads);
    set(first.event);
  }
}

bool Readback::is_set(std::size_t event) const {
  return device_->vk.vkGetEventStatus(device_->handle, events_[event]) == VK_EVENT_SET;
}

void Readback::copy(const Part& part, std::span<void* const> to) const {
  const ReadPlace& place = places_[part.place];
  read_part(to[part.place], mapped() + place.offset, part.begin, part.bytes, place.narrow);
}

// Whether all was copied in that time; the threads are called a little before the device begins to copy.
bool Readback::copy_as_it_comes(std::span<void* const> to, double spin_seconds) const {
  for (const auto begin = Clock::now(); !is_set(0);)
    if (since(begin) > spin_seconds) return false;
  Arrivals arrivals([this](std::size_t event) { return is_set(event); }, longest_copy_seconds);
  std::vector<std::atomic<bool>> taken(parts_.size());
  std::atomic<bool> late = false;
  const auto take = [&](std::size_t i) {
    if (late || taken[i].exchange(true)) return;
    if (arrivals.wait_for(parts_[i].event))
      copy(parts_[i], to);
    else
      late = true;
  };
  // Each thread those that it has in its cache from the run before, some of what comes first and some of what comes
  // last; and then what nobody has begun with.
  const auto threads = static_cast<std::size_t>(copying().threads());
  copying().run(copying().threads(), [&](std::int64_t, int thread) {
    for (std::size_t i = static_cast<std::size_t>(thread); i < parts_.size(); i += threads) take(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) take(i);
  });
  return !late;
}

Status Readback::run(const Commands& commands, std::span<void* const> to, double spin_seconds) const {
  if (parts_.empty()) {
    TOSAIC_CHECK(device_->run(commands.handle, commands.fence, spin_seconds));
    for (std::size_t i = 0; i < places_.size(); ++i)
      copy_to_caller(to[i], mapped() + places_[i].offset, places_[i].bytes, places_[i].narrow);
    return {};
  }
  for (VkEvent event : events_)
    TOSAIC_CHECK(called("vkResetEvent", [&] { return device_->vk.vkResetEvent(device_->handle, event); }));
  TOSAIC_CHECK(device_->submit(commands.handle, commands.fence));
  const bool copied = copy_as_it_comes(to, spin_seconds);
  TOSAIC_CHECK(device_->wait(commands.fence, copied ? spin_seconds : 0));
  if (!copied)
    copying().run(static_cast<std::int64_t>(parts_.size()),
                  [&](std::int64_t i, int) { copy(parts_[static_cast<std::size_t>(i)], to); });
  return {};
}

}  // namespace tosaic::vulkan
