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

namespace tosaic::vulkan {
namespace {

using Clock = SteadyClock;

constexpr int copying_threads = 4;  // at which the bus is the slower one
// What one thread copies at a time; and of how little it copies all by itself, as waking the others takes longer.
constexpr std::size_t share = 64 << 10, few = 768 << 10;
constexpr std::size_t few_to_come = 512 << 10;  // where they have the time of the device's copy to wake up
constexpr std::size_t waits = 4;                // of the host for the device's copies
constexpr double longest_copy_seconds = 0.1;    // of all that is large, once it has begun

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

void copy_memory(void* to, const void* from, std::size_t bytes) {
  const auto part = [&](std::int64_t i, int) {
    const std::size_t begin = static_cast<std::size_t>(i) * share;
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                std::min(share, bytes - begin));
  };
  if (bytes > few)
    ThreadPool::shared(copying_threads).run(static_cast<std::int64_t>((bytes + share - 1) / share), part);
  else if (bytes)
    std::memcpy(to, from, bytes);
}

std::vector<char> outputs_for_host(const vulkan_program::Program& program, const vulkan_program::Tier& tier) {
  using vulkan_program::Arena;
  constexpr std::uint64_t small = 64 << 10;
  struct Place {
    std::uint64_t begin, end;
    bool overlaps(const Place& other) const { return begin < other.end && other.begin < end; }
  };
  const auto place_of = [](const vulkan_program::Tensor& t) {
    return Place{t.offset, t.offset + largest(t.type).storage_bytes()};
  };
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
  if (bytes <= few_to_come) return {};
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
  for (const ReadPlace& p : places_) all += p.there ? 0 : p.bytes;
  if (all <= few_to_come || events_.empty()) return;
  const std::size_t of_event = (all + waits - 1) / waits;
  std::size_t before = 0;
  for (std::size_t place = 0; place < places_.size(); ++place)
    for (std::size_t begin = 0; begin < places_[place].bytes;) {
      const std::size_t event = before / of_event,
                        bytes = std::min({share, places_[place].bytes - begin, (event + 1) * of_event - before});
      parts_.push_back({place, begin, bytes, event + 1});
      begin += bytes;
      before += bytes;
    }
}

void Readback::record(const Commands& commands, VkBuffer io, const std::vector<ReadPlace>& places) {
  places_ = places;
  divide();
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
  device_->vk.vkCmdSetEvent(commands.handle, events_[0], VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
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
  std::memcpy(static_cast<std::byte*>(to[part.place]) + part.begin, mapped() + places_[part.place].offset + part.begin,
              part.bytes);
}

// Whether all was copied in that time; the threads are called when the device begins to copy.
bool Readback::copy_as_it_comes(std::span<void* const> to, double spin_seconds) const {
  const auto begin = Clock::now();
  while (!is_set(0))
    if (since(begin) > spin_seconds) return false;
  std::atomic<bool> late = false;
  const auto began = Clock::now();
  const auto take = [&](std::int64_t i, int) {
    const Part& part = parts_[static_cast<std::size_t>(i)];
    while (!late && !is_set(part.event))
      if (since(began) > longest_copy_seconds) late = true;
    if (!late) copy(part, to);
  };
  ThreadPool::shared(copying_threads).run(static_cast<std::int64_t>(parts_.size()), take);
  return !late;
}

Status Readback::run(const Commands& commands, std::span<void* const> to, double spin_seconds) const {
  if (parts_.empty()) {
    TOSAIC_CHECK(device_->run(commands.handle, commands.fence, spin_seconds));
    for (std::size_t i = 0; i < places_.size(); ++i) copy_memory(to[i], mapped() + places_[i].offset, places_[i].bytes);
    return {};
  }
  for (VkEvent event : events_)
    TOSAIC_CHECK(called("vkResetEvent", [&] { return device_->vk.vkResetEvent(device_->handle, event); }));
  TOSAIC_CHECK(device_->submit(commands.handle, commands.fence));
  const bool copied = copy_as_it_comes(to, spin_seconds);
  TOSAIC_CHECK(device_->wait(commands.fence, copied ? spin_seconds : 0));
  if (!copied)
    ThreadPool::shared(copying_threads).run(static_cast<std::int64_t>(parts_.size()), [&](std::int64_t i, int) {
      copy(parts_[static_cast<std::size_t>(i)], to);
    });
  return {};
}

}  // namespace tosaic::vulkan
