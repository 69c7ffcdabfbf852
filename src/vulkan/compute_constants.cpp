// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_constants.h"

#include <algorithm>
#include <optional>

#include "base/system/mapped_files.h"
#include "vulkan/compute_readback.h"

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
      std::byte* to = staging_->mapped();
      const Rope next = reader.next(part);
      for (const Bytes& chunk : next.chunks()) {
        copy_to_device(to, chunk.data(), chunk.size(), false);
        to += chunk.size();
      }
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

std::vector<Rope> Constants::contents_of_stretches(const Rope& content) const {
  std::vector<Rope> contents;
  RopeReader reader(content);
  std::uint64_t read = 0;
  for (const Stretch& s : stretches_) {
    reader.next(s.begin - read);
    read = std::min(s.end, content.size());  // the last one may end in the midst of what is rounded up
    contents.push_back(reader.next(read - s.begin));
  }
  return contents;
}

namespace {

// Of those that may be shared, some at a time, by several threads: of a file that is mapped each byte is read for the
// first time here, and is to go again before all of them are there.
class Digests {
 public:
  Digests(const std::vector<Rope>& contents, std::uint64_t seed)
      : contents_(contents), seed_(seed), made_(contents.size()) {}
  const Digest& operator[](std::size_t i) {
    if (i >= end_) make(i);
    return made_[i];
  }

 private:
  void make(std::size_t begin) {
    std::uint64_t bytes = 0;
    for (end_ = begin; end_ < made_.size() && bytes < most_batch_bytes; ++end_) bytes += contents_[end_].size();
    copying().run(static_cast<std::int64_t>(end_ - begin), [&](std::int64_t number, int) {
      const std::size_t i = begin + static_cast<std::size_t>(number);
      if (contents_[i].size() >= least_shared_bytes) made_[i] = digest_of(contents_[i], seed_);
    });
  }

  const std::vector<Rope>& contents_;
  const std::uint64_t seed_;
  std::vector<Digest> made_;
  std::size_t end_ = 0;  // those before it are made
};

}  // namespace

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
  const std::vector<Rope> contents = contents_of_stretches(content);
  Digests digests(contents, known.seed);
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    Stretch& s = stretches_[i];
    const Rope& bytes = contents[i];
    if (bytes.size() < least_shared_bytes) {
      own.add(s, bytes);
      continue;
    }
    const Digest digest = digests[i];
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
