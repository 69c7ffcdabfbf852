// SPDX-License-Identifier: Apache-2.0
// The file that keeps a driver's pipelines: what a driver is given of it is what it gave, or nothing. Lavapipe keeps no
// pipelines there, so it is given some.
#include <unistd.h>
#include <cstring>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/bytes.h"
#include "base/system/temporaries.h"
#include "shaders/faulty_device.h"

namespace tosaic::test {
namespace {

using Content = std::vector<std::byte>;

PFN_vkGetDeviceProcAddr real_address = nullptr;
PFN_vkCreatePipelineCache real_create = nullptr;
PFN_vkGetPipelineCacheData real_data = nullptr;
Content given;                        // to the driver that was opened last
std::atomic<std::size_t> body_bytes;  // that drivers give from now on
thread_local std::size_t own_bytes = 0;

// The header that the driver reads, and so many bytes that are told by their number.
Content content_of(const Content& header, std::size_t bytes) {
  Content all = header;
  for (std::size_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::byte>(i * 7 + bytes));
  return all;
}
Content header_of(VkDevice device, VkPipelineCache cache) {
  std::size_t bytes = 0;
  real_data(device, cache, &bytes, nullptr);
  Content header(bytes);
  real_data(device, cache, &bytes, header.data());
  header.resize(sizeof(VkPipelineCacheHeaderVersionOne));
  return header;
}

VkResult create(VkDevice device, const VkPipelineCacheCreateInfo* info, const VkAllocationCallbacks* by,
                VkPipelineCache* cache) {
  const auto* data = static_cast<const std::byte*>(info->pInitialData);
  given.assign(data, data + info->initialDataSize);
  VkPipelineCacheCreateInfo empty = *info;
  empty.initialDataSize = 0;
  return real_create(device, &empty, by, cache);
}
VkResult data_of(VkDevice device, VkPipelineCache cache, std::size_t* bytes, void* at) {
  const Content all = content_of(header_of(device, cache), own_bytes ? own_bytes : body_bytes.load());
  if (at) std::memcpy(at, all.data(), *bytes = std::min(*bytes, all.size()));
  *bytes = all.size();
  return VK_SUCCESS;
}

PFN_vkVoidFunction address(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_address(device, name);
  if (std::strcmp(name, "vkCreatePipelineCache") == 0) {
    real_create = reinterpret_cast<PFN_vkCreatePipelineCache>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(create);
  }
  if (std::strcmp(name, "vkGetPipelineCacheData") == 0) {
    real_data = reinterpret_cast<PFN_vkGetPipelineCacheData>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(data_of);
  }
  return found;
}

Graph identity() {
  Net net;
  net.output(net.node("abs", {net.input(DType::f32, {4}, -1, 1)}));
  return net.graph;
}

class PipelineCache : public OnFaultyDevice {
 protected:
  void SetUp() override {
    OnFaultyDevice::SetUp();
    if (!device) return;
    if (!is_cpu()) GTEST_SKIP() << for_cpu_devices;
    auto made = Temporary::folder();
    ASSERT_TRUE(made.ok());
    folder.emplace(*std::move(made));
    if (const char* before = std::getenv("XDG_CACHE_HOME")) cache_of_before = before;
    setenv("XDG_CACHE_HOME", folder->path().c_str(), 1);
    real_address = vkGetDeviceProcAddr;
    vkGetDeviceProcAddr = address;
    body_bytes = 1000;
  }
  void TearDown() override {
    if (device && is_cpu()) {
      vkGetDeviceProcAddr = real_address;
      if (now) now->forget();
      cache_of_before ? setenv("XDG_CACHE_HOME", cache_of_before->c_str(), 1) : unsetenv("XDG_CACHE_HOME");
    }
    OnFaultyDevice::TearDown();
  }
  // What a driver that is opened now is given.
  const Content& open() {
    (now ? now : device)->forget();
    given.assign(1, std::byte{1});
    auto opened = vulkan::Device::open("", vulkan::Use::compute);
    EXPECT_TRUE(opened.ok());
    if (opened.ok()) now = *opened;
    return given;
  }
  Content wanted(std::size_t bytes) const { return content_of(header_of(now->handle, now->pipeline_cache), bytes); }
  std::string path() const { return now->cache_file(""); }
  Content file() const {
    const auto mapped = map_file(path());
    EXPECT_TRUE(mapped.ok());
    return mapped.ok() ? Content(mapped->data(), mapped->data() + mapped->size()) : Content();
  }

  std::optional<Temporary> folder;
  std::optional<std::string> cache_of_before;
  std::shared_ptr<vulkan::Device> now;
};

TEST_F(PipelineCache, GivesWhatItWasGiven) {
  EXPECT_TRUE(open().empty());
  now->save_pipeline_cache();
  EXPECT_EQ(open(), wanted(1000));
  body_bytes = 2000;
  now->save_pipeline_cache();
  EXPECT_EQ(open(), wanted(2000));
  // What has not grown is not written.
  std::filesystem::remove(path());
  now->save_pipeline_cache();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(PipelineCache, WhatIsDamagedIsEmpty) {
  open();
  now->save_pipeline_cache();
  const Content whole = file();
  const auto given_of = [&](const Content& damaged) {
    EXPECT_TRUE(write_file(path(), damaged.data(), damaged.size()).ok());
    return open();
  };
  EXPECT_EQ(given_of(whole), wanted(1000));
  for (std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{24}, std::size_t{32},
                         std::size_t{63}, std::size_t{64}, whole.size() / 2, whole.size() - 1}) {
    Content damaged = whole;
    damaged.at(at) ^= std::byte{4};
    EXPECT_TRUE(given_of(damaged).empty()) << "byte " << at;
  }
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{32}, std::size_t{63},
                            std::size_t{64}, whole.size() - 1})
    EXPECT_TRUE(given_of(Content(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes))).empty()) << bytes;
  Content longer = whole;
  longer.push_back(std::byte{});
  EXPECT_TRUE(given_of(longer).empty());
  EXPECT_TRUE(given_of(wanted(1000)).empty());  // as earlier versions wrote it
  now->save_pipeline_cache();
  EXPECT_EQ(open(), wanted(1000));
}

// Of what was written whole, the driver's name is still looked at.
TEST_F(PipelineCache, OfAnotherDriver) {
  open();
  now->vk.vkGetPipelineCacheData = [](VkDevice d, VkPipelineCache cache, std::size_t* bytes, void* at) {
    const VkResult result = data_of(d, cache, bytes, at);
    if (at) static_cast<std::byte*>(at)[sizeof(VkPipelineCacheHeaderVersionOne) - 1] ^= std::byte{1};
    return result;
  };
  now->save_pipeline_cache();
  EXPECT_GT(file().size(), 1000u);
  EXPECT_TRUE(open().empty());
}

TEST_F(PipelineCache, ManyWriteAtOnce) {
  open();
  now->save_pipeline_cache();
  std::vector<std::shared_ptr<vulkan::Device>> devices;
  for (int i = 0; i < 3; ++i) {
    open();
    devices.push_back(now);
  }
  std::atomic<int> writing = static_cast<int>(devices.size());
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < devices.size(); ++w)
    writers.emplace_back([&, w] {
      for (std::size_t i = 0; i < 60; ++i) {
        own_bytes = 1001 + 37 * (i % 9) + w;
        devices[w]->save_pipeline_cache();
      }
      --writing;
    });
  for (int seen = 0; writing > 0 && seen < 50; ++seen) {
    const Content content = open();
    if (content.size() <= sizeof(VkPipelineCacheHeaderVersionOne)) {
      ADD_FAILURE() << "nothing is there";
      break;
    }
    EXPECT_EQ(content, wanted(content.size() - sizeof(VkPipelineCacheHeaderVersionOne)));
  }
  for (std::thread& t : writers) t.join();
  EXPECT_GT(open().size(), 1000u);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path()).parent_path()))
    EXPECT_EQ(entry.path(), path());  // no temporary is left
}

// What the link leads to is somebody else's.
TEST_F(PipelineCache, LinksAreReplacedAndNotFollowed) {
  open();
  now->save_pipeline_cache();
  const std::string target = folder->path() + "/precious", remembered = now->cache_file(".checked");
  ASSERT_TRUE(write_file(target, "precious").ok());
  const auto precious = [&] { return std::string(reinterpret_cast<const char*>(map_file(target)->data()), 8); };
  for (const std::string& path : {path(), remembered}) {
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
  }
  EXPECT_TRUE(open().empty());
  body_bytes = 2000;
  now->save_pipeline_cache();
  EXPECT_FALSE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(open(), wanted(2000));
  const auto model = vulkan::ComputeModel::load(compiled(identity(), every_tier()));
  EXPECT_TRUE(model.ok());
  EXPECT_FALSE(std::filesystem::is_symlink(remembered));
  EXPECT_EQ(precious(), "precious");
}

TEST_F(PipelineCache, LargeOnesAreEmptyAndBeginAnew) {
  open();
  now->save_pipeline_cache();
  const std::size_t most = std::exchange(vulkan::most_cache_bytes, file().size());
  EXPECT_EQ(open(), wanted(1000));
  --vulkan::most_cache_bytes;
  EXPECT_TRUE(open().empty());
  now->save_pipeline_cache();  // nor is one written that nobody reads
  EXPECT_FALSE(std::filesystem::exists(path()));
  vulkan::most_cache_bytes = most;
  // A file of holes, which says of itself what it likes.
  open();
  now->save_pipeline_cache();
  std::filesystem::resize_file(path(), std::uintmax_t{1} << 30);
  EXPECT_TRUE(open().empty());
}

TEST_F(PipelineCache, FoldersThatCannotBeWritten) {
  open();
  now->save_pipeline_cache();
  const Content whole = file();
  const std::filesystem::path inside = std::filesystem::path(path()).parent_path();
  using std::filesystem::perms;
  std::filesystem::permissions(folder->path(), perms{0755});
  std::filesystem::permissions(inside, perms{0555});
  std::filesystem::permissions(path(), perms{0444});
  const bool root = geteuid() == 0;  // who may write everywhere
  if (root) { ASSERT_EQ(seteuid(65534), 0); }
  EXPECT_EQ(open(), wanted(1000));  // it is read all the same
  body_bytes = 3000;
  now->save_pipeline_cache();
  if (root) { ASSERT_EQ(seteuid(0), 0); }
  EXPECT_EQ(file(), whole);
  std::filesystem::permissions(inside, perms{0755});
  std::filesystem::permissions(path(), perms{0644});
  now->save_pipeline_cache();  // what has not been written is tried again
  EXPECT_EQ(open(), wanted(3000));
}

}  // namespace
}  // namespace tosaic::test
