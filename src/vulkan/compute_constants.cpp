// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_constants.h"

#include <algorithm>
#include <optional>

#include "base/system/mapped_files.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::alignment;
using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// Of memory that brings constants to the device.
constexpr std::uint64_t most_staging_bytes = std::uint64_t{16} << 20;
// From a mapped file to memory that host and device share.
constexpr std::uint64_t copied_at_once = std::uint64_t{1} << 20;
// Smaller ones are each program's own.
constexpr std::uint64_t least_shared_bytes = std::uint64_t{64} << 10;
// Of a buffer with several stretches. All of it stays as long as one of them is used, by any program, so not too much;
// and drivers promise no more than 4096 allocations, so not too little.
constexpr std::uint64_t most_batch_bytes = std::uint64_t{32} << 20;

std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Brings bytes into buffers of their own.
class Uploader {
 public:
  Uploader(std::shared_ptr<Device> device, std::uint64_t most)
      : device_(std::move(device)), commands_(device_), staging_bytes_(std::min(most, most_staging_bytes)) {}

  Result<std::shared_ptr<DeviceBuffer>> upload(const Rope& content) {
    const VkPhysicalDeviceType type = device_->info().type;
    const bool unified = type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    const std::uint64_t bytes = content.size();
    TOSAIC_TRY(std::shared_ptr<DeviceBuffer> made, DeviceBuffer::make(device_, with_room_for_views(bytes),
                                                                      unified ? Placement::shared : Placement::device));
    RopeReader reader(content);
    if (made->mapped()) {
      std::byte* to = made->mapped();
      for (std::uint64_t left = bytes; left > 0;) {  // never all of a file together with all of its copy
        const Rope part = reader.next(std::min(left, copied_at_once));
        RopeReader(part).next(static_cast<std::size_t>(part.size()), to);
        for (const Bytes& chunk : part.chunks()) release_pages(chunk.data(), chunk.size());
        to += part.size();
        left -= part.size();
      }
      return made;
    }
    if (!staging_) {
      TOSAIC_TRY(staging_, DeviceBuffer::make(device_, staging_bytes_, Placement::upload));
      TOSAIC_CHECK(commands_.make());
    }
    for (std::uint64_t at = 0; at < bytes; at += staging_->bytes()) {
      const std::uint64_t part = std::min<std::uint64_t>(bytes - at, staging_->bytes());
      reader.next(static_cast<std::size_t>(part), staging_->mapped());
      TOSAIC_CHECK(commands_.begin());
      commands_.copy(staging_->handle(), made->handle(), {0, at, part});
      commands_.barrier(copy_writes, shader_reads);
      TOSAIC_CHECK(commands_.end());
      TOSAIC_CHECK(device_->run(commands_.handle, commands_.fence, 0));
    }
    return made;
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceBuffer> staging_;  // where the host does not see the device's memory
  Commands commands_;
  std::uint64_t staging_bytes_;
};

}  // namespace

// Stretches on their way into one buffer.
class Constants::Batch {
 public:
  explicit Batch(Uploader& uploader) : uploader_(uploader) {}
  std::uint64_t bytes() const { return content_.size(); }
  void add(Stretch& stretch, const Rope& content) {
    stretch.offset = content_.size();
    stretches_.push_back(&stretch);
    content_.append(content);
    content_.zeros(rounded_up(content_.size()) - content_.size());
  }
  Status upload() {
    if (stretches_.empty()) return {};
    TOSAIC_TRY(const std::shared_ptr<DeviceBuffer> buffer, uploader_.upload(content_));
    for (Stretch* s : stretches_) s->buffer = buffer;
    stretches_.clear();
    content_ = {};
    return {};
  }

 private:
  Uploader& uploader_;
  Rope content_;
  std::vector<Stretch*> stretches_;
};

Constants::Constants(const vulkan_program::Tier& tier) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const Dispatch& d : tier.dispatches)
    for (const Range& r : d.ranges)
      if (r.arena == Arena::constants) ranges.emplace_back(r.offset, rounded_up(r.offset + r.bytes));
  std::ranges::sort(ranges);
  for (const auto& [begin, end] : ranges)
    if (!stretches_.empty() && begin < stretches_.back().end)
      stretches_.back().end = std::max(stretches_.back().end, end);
    else
      stretches_.push_back({begin, end, nullptr, 0});
}

std::uint64_t Constants::bytes() const {
  std::uint64_t all = 0;
  for (const Stretch& s : stretches_) all += s.end - s.begin;
  return all;
}

Status Constants::upload(const std::shared_ptr<Device>& device, const Rope& content) {
  auto& known = device->uploaded;
  std::erase_if(known.known_ranges, [](const auto& entry) { return entry.second.buffer.expired(); });
  Uploader uploader(device, bytes());
  Batch own(uploader), shared(uploader);
  std::vector<std::pair<Digest, Stretch*>> fresh;  // what others may share as soon as it is there
  const auto upload_shared = [&]() -> Status {
    TOSAIC_CHECK(shared.upload());
    for (const auto& [digest, s] : fresh) known.known_ranges[digest] = {s->buffer, s->offset};
    fresh.clear();
    return {};
  };
  RopeReader reader(content);
  std::uint64_t read = 0;
  for (Stretch& s : stretches_) {
    reader.next(s.begin - read);
    read = std::min(s.end, content.size());  // the last one may end in the midst of what is rounded up
    const Rope bytes = reader.next(read - s.begin);
    if (bytes.size() < least_shared_bytes) {
      own.add(s, bytes);
      continue;
    }
    const Digest digest = digest_of(bytes, known.seed);
    if (const auto found = known.known_ranges.find(digest); found != known.known_ranges.end()) {
      s.buffer = found->second.buffer.lock();
      s.offset = found->second.offset;
    }
    if (s.buffer) continue;
    if (shared.bytes() + bytes.size() > most_batch_bytes) TOSAIC_CHECK(upload_shared());
    shared.add(s, bytes);
    fresh.emplace_back(digest, &s);
  }
  TOSAIC_CHECK(upload_shared());
  return own.upload();
}

BoundRange Constants::at(const Range& range) const {
  const auto behind = std::ranges::upper_bound(stretches_, range.offset, {}, &Stretch::begin);
  const Stretch& s = *(behind - 1);
  BoundRange bound = bound_range(*s.buffer, s.offset + (range.offset - s.begin), range);
  bound.behind = s.buffer->bytes() - bound.offset - bound.bytes;
  return bound;
}

}  // namespace tosaic::vulkan
