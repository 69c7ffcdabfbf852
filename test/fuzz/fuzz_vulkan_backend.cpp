// SPDX-License-Identifier: Apache-2.0
// Any bytes as a payload of ExecuTorch's VulkanBackend, its constants all zeros: lowered, or a diagnostic.
#include "delegates/vulkan_backend/chain.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  static const std::vector<std::byte> zeros(1 << 16);
  const tosaic::Bytes payload = tosaic::Bytes::copy(data, size);
  const auto named = [](const std::string& key) {
    return tosaic::Bytes(nullptr, zeros.data(), key.size() * 64 % zeros.size());
  };
  const auto file = tosaic::vulkan_backend::read(payload, "fuzz.pte");
  if (!file.ok()) return 0;
  const auto graph = tosaic::vulkan_backend::tosa_graph(*file, named, "fuzz.pte");
  if (!graph.ok() && graph.error().internal) __builtin_trap();
  return 0;
}
