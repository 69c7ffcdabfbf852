// SPDX-License-Identifier: Apache-2.0
// Constants that are equal lie on a device once: what is taken, when it is given back, and that nobody is given what
// has gone.
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "shaders/faulty_device.h"
#include "vulkan/compute_constants.h"

namespace tosaic::test {
namespace {

using vulkan_program::Arena;

constexpr std::int64_t width = 64;
constexpr std::uint64_t MB = std::uint64_t{1} << 20;

// What `table` tells of `count` rows: rows of a table for each number in `tables`, added up. Equal numbers make equal
// tables.
struct Lookup {
  std::int64_t count, rows;  // of the result; of each table
  std::vector<std::uint32_t> tables;

  static float element(std::uint32_t table, std::int64_t row, std::int64_t column) {
    return static_cast<float>((row * 31 + column + table * 7) % 1001);
  }
  vulkan_program::Program program() const {
    Net net;
    const ValueId places = net.input(DType::i32, {1, count}, 0, 1);
    std::optional<ValueId> sum;
    for (const std::uint32_t table : tables) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < rows * width; ++i) values.push_back(element(table, i / width, i % width));
      const ValueId constant = net.graph.add_value("table" + std::to_string(table) + std::to_string(values.size()),
                                                   TensorType{DType::f32, {1, rows, width}}, Bytes::of(values));
      const ValueId found = net.node("gather", {constant, places});
      sum = sum ? net.node("add", {*sum, found}) : found;
    }
    net.output(*sum);
    return compiled(net.graph, every_tier());
  }
  Result<vulkan::ComputeModel> load() const { return vulkan::ComputeModel::load(program()); }
  bool runs(vulkan::ComputeModel& model) const {
    std::vector<std::int32_t> places;
    for (std::int64_t i = 0; i < count; ++i) places.push_back(static_cast<std::int32_t>((i * 977 + 5) % rows));
    std::vector<float> out(static_cast<std::size_t>(count * width), -1), wanted;
    const void* in[] = {places.data()};
    void* to[] = {out.data()};
    if (!model.run(in, to).ok()) return false;
    for (const std::int32_t place : places)
      for (std::int64_t c = 0; c < width; ++c) {
        wanted.push_back(0);
        for (const std::uint32_t table : tables) wanted.back() += element(table, place, c);
      }
    return out == wanted;
  }
};

// Memory of the device that is taken at the moment.
struct Taken {
  static inline std::mutex guard;
  static inline std::map<VkDeviceMemory, std::uint64_t> alive;
  static inline VolkDeviceTable real;
  static inline int failing = -1;  // the allocation that fails, counted from now

  static void count(vulkan::Device& device) {
    alive.clear();
    failing = -1;
    real = device.vk;
    device.vk.vkAllocateMemory = [](VkDevice d, const VkMemoryAllocateInfo* i, const VkAllocationCallbacks* a,
                                    VkDeviceMemory* m) {
      const std::lock_guard lock(guard);
      if (failing >= 0 && failing-- == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
      const VkResult result = real.vkAllocateMemory(d, i, a, m);
      if (result == VK_SUCCESS) alive[*m] = i->allocationSize;
      return result;
    };
    device.vk.vkFreeMemory = [](VkDevice d, VkDeviceMemory m, const VkAllocationCallbacks* a) {
      const std::lock_guard lock(guard);
      alive.erase(m);
      real.vkFreeMemory(d, m, a);
    };
  }
  static std::uint64_t bytes() {
    const std::lock_guard lock(guard);
    std::uint64_t all = 0;
    for (const auto& [memory, size] : alive) all += size;
    return all;
  }
};

using SharedConstants = OnFaultyDevice;

TEST_F(SharedConstants, LieOnADeviceOnce) {
  Taken::count(*device);
  const Lookup few{4, 4096, {1}}, many{9, 4096, {1}}, other{4, 4096, {2}};
  {
    auto first = few.load();
    ASSERT_TRUE(first.ok()) << render(first.error(), false);
    const std::uint64_t alone = Taken::bytes();
    EXPECT_GE(alone, 1 * MB);
    auto second = many.load();  // another program
    ASSERT_TRUE(second.ok());
    EXPECT_LT(Taken::bytes(), alone + MB / 4);
    auto again = few.load();  // the same one
    ASSERT_TRUE(again.ok());
    EXPECT_LT(Taken::bytes(), alone + MB / 4);
    auto unlike = other.load();  // as large, of other numbers
    ASSERT_TRUE(unlike.ok());
    EXPECT_GE(Taken::bytes(), alone + 1 * MB);
    EXPECT_TRUE(few.runs(*first) && many.runs(*second) && few.runs(*again) && other.runs(*unlike));
    { const auto gone = std::move(*first); }  // who brought them
    EXPECT_TRUE(many.runs(*second) && few.runs(*again));
    auto clone = second->clone();
    ASSERT_TRUE(clone.ok());
    { const auto gone = std::move(*second); }
    { const auto gone = std::move(*again); }
    EXPECT_TRUE(many.runs(*clone));
    auto late = few.load();
    ASSERT_TRUE(late.ok());
    EXPECT_LT(Taken::bytes(), 2 * alone + MB / 4);
    EXPECT_TRUE(few.runs(*late) && many.runs(*clone));
  }
  EXPECT_EQ(Taken::bytes(), 0u);
  auto anew = few.load();
  ASSERT_TRUE(anew.ok());
  EXPECT_GE(Taken::bytes(), 1 * MB);
  EXPECT_TRUE(few.runs(*anew));
  EXPECT_EQ(device->uploaded.known_ranges.size(), 1u) << "of what has gone nothing is kept";
}

// As methods of one file: weights next to the payloads, as their shaders want them, for 16 rows and for one.
TEST_F(SharedConstants, OfProductsOfOtherRows) {
  Taken::count(*device);
  std::vector<vulkan::ComputeModel> models;
  std::uint64_t before = 0;
  for (const std::int64_t rows : {16, 1}) {
    Net net;
    ValueId x = net.input(DType::f32, {1, rows, 512}, -1, 1);
    for (int layer = 0; layer < 3; ++layer)
      x = net.node("matmul",
                   {x, net.constant(DType::f32, {1, 512, 512}, -1, 1), net.zero(DType::f32), net.zero(DType::f32)});
    net.output(x);
    // The same numbers in both, whatever the input took of the source.
    for (std::size_t v = 0, layer = 0; v < net.graph.values.size(); ++v)
      if (auto& value = net.graph.values[v]; value.constant.size() == 1 * MB) {
        Net numbers(static_cast<std::uint32_t>(++layer));
        value.constant = numbers.elements(value.type, -1, 1);
      }
    const auto made = shaders::compile(net.graph, every_tier());
    ASSERT_TRUE(made.ok());
    const auto parts = vulkan_program::write_parts(*made, 1024);
    std::map<std::string, Bytes> external_data(parts.outside.begin(), parts.outside.end());
    EXPECT_GE(external_data.size(), 3u);
    auto program =
        vulkan_program::read(parts.file.joined(), [&](const std::string& key) { return external_data.at(key); });
    ASSERT_TRUE(program.ok()) << render(program.error(), false);
    auto model = vulkan::ComputeModel::load(*std::move(program));
    ASSERT_TRUE(model.ok()) << render(model.error(), false);
    models.push_back(*std::move(model));
    if (rows == 1) { EXPECT_LT(Taken::bytes() - before, MB / 4); }
    before = Taken::bytes();
    EXPECT_GE(before, 3 * MB);
  }
}

// Of a program of 40 MB there is only what lies next to what another one reads left.
TEST_F(SharedConstants, GoInParts) {
  auto& type = const_cast<vulkan::DeviceInfo&>(device->info()).type;
  const VkPhysicalDeviceType usual = type;
  // Where the host does not see the device's memory they come through memory that it sees.
  for (const VkPhysicalDeviceType kind : {usual, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU}) {
    type = kind;
    Taken::count(*device);
    const Lookup all{4, 40000, {1, 2, 3, 4}}, last{5, 40000, {4}};
    {
      auto first = all.load();
      ASSERT_TRUE(first.ok()) << render(first.error(), false);
      EXPECT_GE(Taken::bytes(), 39 * MB);
      auto second = last.load();
      ASSERT_TRUE(second.ok());
      EXPECT_LT(Taken::bytes(), 41 * MB);
      EXPECT_TRUE(all.runs(*first) && last.runs(*second));
      { const auto gone = std::move(*first); }
      EXPECT_LT(Taken::bytes(), 32 * MB);
      EXPECT_TRUE(last.runs(*second));
    }
    EXPECT_EQ(Taken::bytes(), 0u);
    device->vk = kept;
  }
  type = usual;
}

TEST_F(SharedConstants, ALostDeviceTakesThemAlong) {
  const Lookup lookup{4, 4096, {1}};
  auto before = lookup.load();
  ASSERT_TRUE(before.ok());
  device->forget();
  auto next = vulkan::Device::open("", vulkan::Use::compute);
  ASSERT_TRUE(next.ok());
  ASSERT_NE(next->get(), device.get());
  const VolkDeviceTable usual = (*next)->vk;
  Taken::count(**next);
  {
    auto after = lookup.load();
    ASSERT_TRUE(after.ok());
    EXPECT_GE(Taken::bytes(), 1 * MB);
    { const auto gone = std::move(*before); }
    EXPECT_TRUE(lookup.runs(*after));
  }
  EXPECT_EQ(Taken::bytes(), 0u);
  (*next)->vk = usual;
}

TEST_F(SharedConstants, WhatDidNotArriveIsNotShared) {
  Taken::count(*device);
  const Lookup all{4, 40000, {1, 2, 3, 4}};
  for (const int failing : {0, 1, 2}) {
    Taken::failing = failing;
    EXPECT_EQ(code_of(all.program()), "vulkan.memory");
    EXPECT_EQ(Taken::bytes(), 0u);
  }
  Taken::failing = -1;
  auto model = all.load();
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(all.runs(*model));
}

TEST_F(SharedConstants, InThreads) {
  unsetenv("TOSAIC_VULKAN_SELF_TEST");  // once is enough
  Taken::count(*device);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const Lookup lookup{4 + t, 4096, {1}};
      for (int k = 0; k < 10; ++k) {
        auto model = lookup.load();
        if (!model.ok() || !lookup.runs(*model)) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Taken::bytes(), 0u);
}

// Ranges within one another are in one stretch, wherever they begin; what nobody reads is not brought.
TEST_F(SharedConstants, RangesThatOverlap) {
  const auto range = [](std::uint64_t offset, std::uint64_t bytes) {
    return vulkan_program::Range{Arena::constants, false, vulkan_program::View::buffer, offset, bytes};
  };
  vulkan_program::Tier tier;
  tier.dispatches.resize(2);
  tier.dispatches[0].ranges = {range(1 << 20, 300000), range((1 << 20) + 299776, 1000), range(2 << 20, 100)};
  tier.dispatches[1].ranges = {range((1 << 20) + 512, 256), range(0, 1000)};
  std::vector<std::uint32_t> words((2 << 20) / 4 + 25);  // its end is no multiple of 256
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i);
  vulkan::Constants constants(tier);
  EXPECT_EQ(constants.bytes(), 1024u + 300800 + 256);
  const std::lock_guard lock(device->building);
  ASSERT_TRUE(constants.upload(device, Rope(Bytes::of(words))).ok());
  const auto at = [&](std::uint64_t offset) { return constants.at(range(offset, 256)); };
  EXPECT_EQ(at((1 << 20) + 512).buffer, at(1 << 20).buffer);
  EXPECT_EQ(at((1 << 20) + 512).offset, at(1 << 20).offset + 512);
  EXPECT_EQ(at((1 << 20) + 299776).offset, at(1 << 20).offset + 299776);
  EXPECT_NE(at(0).buffer, at(1 << 20).buffer);  // a small one is the program's own
  EXPECT_EQ(at(0).buffer, at(2 << 20).buffer);
  EXPECT_EQ(at(2 << 20).offset, 1024u);
}

}  // namespace
}  // namespace tosaic::test
