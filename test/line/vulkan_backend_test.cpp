// SPDX-License-Identifier: Apache-2.0
// Payloads of ExecuTorch's own Vulkan flow with a few bytes changed: lowered, or refused with a reason; never a crash.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <random>

#include "delegates/vulkan_backend/chain.h"
#include "formats/pte/pte_file.h"

namespace tosaic {
namespace {

struct Payload {
  std::string name;
  Bytes bytes;
  std::map<std::string, Bytes> data;
};

std::vector<Payload> payloads() {
  std::vector<Payload> list;
  for (const auto& entry : std::filesystem::directory_iterator(TOSAIC_TEST_DATA "/plugin/vulkan")) {
    if (entry.path().extension() != ".pte") continue;
    const auto file = map_file(entry.path().string());
    const auto program = pte::read(*file, entry.path().string());
    Payload payload;
    for (const auto& named : program->named_data) payload.data.emplace(named.key, named.data);
    for (const auto& delegate : program->plans[0].delegates) {
      payload.name = entry.path().stem().string();
      payload.bytes = Bytes::copy(delegate.payload.data(), delegate.payload.size());
      list.push_back(payload);
    }
  }
  std::sort(list.begin(), list.end(), [](const Payload& a, const Payload& b) { return a.name < b.name; });
  return list;
}

Result<Graph> lowered(const Payload& payload, const Bytes& bytes) {
  TOSAIC_TRY(const vulkan_backend::File file, vulkan_backend::read(bytes, "x.pte"));
  return vulkan_backend::tosa_graph(
      file,
      [&](const std::string& key) {
        const auto found = payload.data.find(key);
        return found == payload.data.end() ? Bytes() : found->second;
      },
      "x.pte");
}

TEST(VulkanBackendLine, changed_bytes) {
  std::mt19937 random(1);
  int taken = 0, refused = 0;
  for (const Payload& payload : payloads()) {
    const auto good = lowered(payload, payload.bytes);
    EXPECT_TRUE(good.ok()) << payload.name << ": " << good.error().message;
    for (int round = 0; round < 1000; ++round) {
      std::vector<std::byte> bytes(payload.bytes.data(), payload.bytes.data() + payload.bytes.size());
      for (int k = 0; k < 1 + round % 3; ++k)
        bytes[32 + random() % (bytes.size() - 32)] = static_cast<std::byte>(random() % (round % 2 ? 256 : 8));
      const auto graph = lowered(payload, Bytes::of(bytes));
      ++(graph.ok() ? taken : refused);
      if (!graph.ok()) { EXPECT_FALSE(graph.error().internal) << payload.name << ": " << graph.error().message; }
    }
  }
  EXPECT_GT(taken, 20);
  EXPECT_GT(refused, 200);
}

TEST(VulkanBackendLine, data_that_are_not_here) {
  for (Payload& payload : payloads()) {
    if (payload.name != "net") continue;
    payload.data.clear();
    const auto graph = lowered(payload, payload.bytes);
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.error().code, "vulkan-backend.data");
    EXPECT_EQ(graph.error().place.file, "x.pte");
  }
}

}  // namespace
}  // namespace tosaic
