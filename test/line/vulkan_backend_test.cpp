// SPDX-License-Identifier: Apache-2.0
// Payloads of ExecuTorch's own Vulkan flow with a few bytes changed: lowered, or refused with a reason; never a crash.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "delegates/vulkan_backend/chain.h"
#include "formats/pte/pte_file.h"
#include "tosaic/session.hpp"

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
    for (const auto& named : program->named_data) payload.data.emplace(named.key, named.data.joined());
    for (const auto& delegate : program->plans[0].delegates) {
      payload.name = entry.path().stem().string();
      const Bytes read = delegate.payload.joined();
      payload.bytes = Bytes::copy(read.data(), read.size());
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
    for (int round = 0; round < 300; ++round) {
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

// The first outputs of `count` runs.
std::vector<std::vector<std::byte>> runs_of(Session& session, int count) {
  const std::vector<float> x(20, 0.5F);
  std::vector<std::vector<std::byte>> found;
  for (int i = 0; i < count; ++i) {
    const auto outputs = session.run({{x.data(), DType::f32, {1, 4, 5}}});
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    const Bytes& y = outputs->at(0).tensor->data;
    found.emplace_back(y.data(), y.data() + y.size());
  }
  return found;
}

TEST(VulkanBackendLine, buffers_are_kept_set_back_and_not_shared) {
  for (const char* device : {"cpu", "vulkan"}) {
    auto session = Session::open(TOSAIC_TEST_DATA "/plugin/vulkan/runs.pte", {.device = device});
    ASSERT_TRUE(session.ok()) << session.error().message;
    const auto first = runs_of(*session, 2);
    EXPECT_NE(first[0], first[1]);
    auto clone = session->clone();
    ASSERT_TRUE(clone.ok()) << clone.error().message;
    EXPECT_EQ(runs_of(*clone, 2), first);
    ASSERT_TRUE(session->reset().ok());
    EXPECT_EQ(runs_of(*session, 2), first);
  }
}

// A value is computed once, unless it is a constant's place.
TEST(VulkanBackendLine, what_is_written_twice) {
  using namespace vulkan_backend;
  const vulkan_backend::Tensor tensor{DType::f32, DType::f32, Shape({2}), {}};
  File file;
  file.values = {tensor, tensor, std::int64_t{1}};
  file.inputs = {0};
  file.outputs = {1};
  file.calls = {{0, "aten.relu.default", {0, 1}}, {1, "aten.tanh.default", {0, 1}}};
  const auto graph = [&] {
    return aten_graph(
        file, [](const std::string&) { return Bytes(); }, "x");
  };
  ASSERT_FALSE(graph().ok());
  EXPECT_EQ(graph().error().code, "vulkan-backend.arguments");
  file.calls = {{0, "aten.relu.default", {0, 0}}};  // over an input
  ASSERT_FALSE(graph().ok());
  EXPECT_EQ(graph().error().code, "vulkan-backend.arguments");
  file.calls = {{0, "et_vk.prepack.default", {0, 1}}, {1, "aten.relu.default", {0, 1}}};  // begins as an input
  ASSERT_FALSE(graph().ok());
  EXPECT_EQ(graph().error().code, "vulkan-backend.arguments");
}

}  // namespace
}  // namespace tosaic
