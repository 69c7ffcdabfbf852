// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk: one file per device and driver version in $XDG_CACHE_HOME/tosaic, replaced as a whole,
// so that processes may share it. A file that is missing, foreign, cut off, damaged or too large is an empty cache.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/system/environment.h"
#include "base/system/own_files.h"
#include "vulkan/call.h"
#include "vulkan/device.h"

namespace tosaic::vulkan {
namespace {

std::string cache_folder() {
  const std::string cache = environment_variable("XDG_CACHE_HOME"), home = environment_variable("HOME");
  if (cache.starts_with('/')) return cache + "/tosaic";
  return home.starts_with('/') ? home + "/.cache/tosaic" : "";
}

// What stands in the file before the driver's own bytes: drivers trust those behind the header that they know.
using Label = std::array<std::uint64_t, 4>;  // a name, which form this is, how many bytes follow, their hash
Label label_of(const void* data, std::size_t bytes) { return {0x656863616370766b, 1, bytes, hash_of(data, bytes)}; }

// The driver's bytes; none: they are not what was written.
Bytes content_of(const Bytes& file) {
  Label label{};
  if (file.size() < sizeof(label)) return {};
  std::memcpy(label.data(), file.data(), sizeof(label));
  Bytes content = file.slice(sizeof(label), file.size() - sizeof(label));
  return label == label_of(content.data(), content.size()) ? content : Bytes();
}

// Drivers check the header that they wrote themselves; not all of them survive a file shorter than it.
bool usable(const Bytes& content, const VkPhysicalDeviceProperties& device) {
  VkPipelineCacheHeaderVersionOne header;
  if (content.size() < sizeof(header)) return false;
  std::memcpy(&header, content.data(), sizeof(header));
  return header.headerSize >= sizeof(header) && header.headerSize <= content.size() &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == device.vendorID &&
         header.deviceID == device.deviceID &&
         std::memcmp(header.pipelineCacheUUID, device.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

}  // namespace

void Device::open_pipeline_cache(const VkPhysicalDeviceProperties& properties) {
  Bytes stored;
  if (const std::string folder = cache_folder(); !folder.empty()) {
    const auto uuid = hash_of(properties.pipelineCacheUUID, VK_UUID_SIZE, properties.driverVersion);
    cache_file_ =
        fmt::format("{}/pipelines-{:04x}-{:04x}-{:016x}{}.bin", folder, properties.vendorID, properties.deviceID, uuid,
                    info_.emulated         ? "-emulated"
                    : use_ == Use::compute ? "-compute"
                                           : "");
    stored = content_of(copy_of_file(cache_file_, most_cache_bytes));
    if (!usable(stored, properties)) stored = {};
  }
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = stored.size();
  info.pInitialData = stored.data();
  cached_bytes_ = stored.size();
  if (!called("vkCreatePipelineCache", [&] {
         return vk.vkCreatePipelineCache(handle, &info, nullptr, &pipeline_cache);
       }).ok())
    pipeline_cache = VK_NULL_HANDLE;  // pipelines are made without one
}

void Device::save_pipeline_cache() {
  if (pipeline_cache == VK_NULL_HANDLE || cache_file_.empty()) return;
  std::size_t bytes = 0;
  const auto get = [&](void* at) {
    return called("vkGetPipelineCacheData",
                  [&] { return vk.vkGetPipelineCacheData(handle, pipeline_cache, &bytes, at); });
  };
  // No more than the header: a driver that caches nothing here.
  if (!get(nullptr).ok() || bytes == cached_bytes_ || bytes <= sizeof(VkPipelineCacheHeaderVersionOne)) return;
  // Of programs that nobody runs any more, most of it: the next process begins anew.
  if (bytes > most_cache_bytes - sizeof(Label)) {
    cached_bytes_ = bytes;
    std::error_code ignored;
    std::filesystem::remove(cache_file_, ignored);
    return;
  }
  std::vector<std::byte> data(sizeof(Label) + bytes);
  std::byte* const content = data.data() + sizeof(Label);
  if (!get(content).ok()) return;
  data.resize(sizeof(Label) + bytes);  // it may be less than was said
  const Label label = label_of(content, bytes);
  std::memcpy(data.data(), label.data(), sizeof(label));
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(cache_file_).parent_path(), ignored);
  if (replace_file(cache_file_, Bytes::of(std::move(data)))) cached_bytes_ = bytes;
}

}  // namespace tosaic::vulkan
