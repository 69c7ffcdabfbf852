// SPDX-License-Identifier: Apache-2.0
// Outputs of a GPU on their way to the host: the device copies them into memory that the host caches, and the host from
// there to where the caller wants them. What is large goes in parts, of which the host copies one, by several threads,
// while the next one is on the bus. What is narrow there is widened as it is copied.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/system/thread_pool.h"
#include "vulkan/compute_commands.h"

namespace tosaic::vulkan {

// The threads that copy.
ThreadPool& copying();

// Between the host's memory and a GPU's: one core alone copies more slowly than the bus does. `bytes` are those in the
// device's memory; where they are narrow, the caller has twice as many.
void copy_to_device(std::byte* to, const void* from, std::size_t bytes, bool narrow);
void copy_to_caller(void* to, const std::byte* from, std::size_t bytes, bool narrow);

// Of an output: where it lies in the memory of inputs and outputs, and where the caller wants it.
struct ReadPlace {
  VkDeviceSize offset = 0;
  std::size_t bytes = 0;
  bool there = false;  // dispatches write it into the host's memory
  bool narrow = false;
};

// By output: may dispatches write it there, with no copy after them? Small ones that no dispatch reads.
std::vector<char> outputs_for_host(const vulkan_program::Program& program, const vulkan_program::Tier& tier);

class Readback {
 public:
  explicit Readback(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // Errors: vulkan.memory, vulkan.failed.
  Status make(VkDeviceSize bytes);
  const DeviceBuffer& memory() const { return *memory_; }
  VkBuffer handle() const { return memory_->handle(); }
  const std::byte* mapped() const { return memory_->mapped(); }

  // Where results lie: before any commands that make them.
  void begin(std::vector<ReadPlace> places);
  // A little before the last dispatches end: the host's threads are called, as they take some time to wake up.
  void announce(const Commands& commands) const;
  // Commands that copy results from `io`, behind all dispatches.
  void record(const Commands& commands, VkBuffer io) const;
  // Runs the commands that were recorded, and copies to the caller's memory. Errors: those of Device::run.
  Status run(const Commands& commands, std::span<void* const> to, double spin_seconds) const;

 private:
  // The device's copy of a part is done when an event of this number is set.
  struct Part {
    std::size_t place, begin, bytes, event;
  };
  bool is_set(std::size_t event) const;
  void divide();
  void copy(const Part& part, std::span<void* const> to) const;
  bool copy_as_it_comes(std::span<void* const> to, double spin_seconds) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceBuffer> memory_;
  std::vector<VkEvent> events_;  // the first one: most dispatches are done. Empty: the device makes none
  std::vector<ReadPlace> places_;
  std::vector<Part> parts_;  // empty: nothing is large
  Undo undo_;
};

}  // namespace tosaic::vulkan
