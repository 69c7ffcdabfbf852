// SPDX-License-Identifier: Apache-2.0
#include "formats/vulkan_program/tiers.h"

#include <algorithm>
#include <tuple>

namespace tosaic::vulkan_program {
namespace {

std::string_view needs_dots(const DeviceTraits& d) {
  return d.dots ? "" : "VK_KHR_shader_integer_dot_product, of 8-bit integers in 32-bit words";
}

std::string_view needs_matrices(const DeviceTraits& d) {
  if (!d.matrices || !d.storage_16) return "VK_KHR_cooperative_matrix with 16x16x16 of f16, in subgroups of 32";
  return needs_dots(d);
}

bool is_gpu(const DeviceTraits& d) { return !d.is_cpu; }

constexpr TierRow rows[] = {
    {TierId::cpu, "cpu", "CPU devices such as lavapipe", [](const DeviceTraits& d) { return d.is_cpu; },
     [](const DeviceTraits& d) -> std::string_view {
       return d.subgroup_size == 8 && d.shuffles ? "" : "subgroups of 8 invocations that shuffle";
     }},
    {TierId::coopmat_int8, "coopmat-int8", "GPUs that multiply matrices of f16 and of 8-bit integers", is_gpu,
     [](const DeviceTraits& d) -> std::string_view {
       if (!d.int8_matrices) return "VK_KHR_cooperative_matrix with 16x16x32 of 8-bit integers, in subgroups of 32";
       return needs_matrices(d);
     },
     256, 40 << 10},
    {TierId::coopmat, "coopmat", "GPUs that multiply matrices of f16", is_gpu, needs_matrices, 256, 32 << 10},
    {TierId::dot, "dot", "GPUs that multiply four 8-bit integers at once",
     [](const DeviceTraits& d) { return !d.is_cpu && d.fast_dots; }, needs_dots},
    {TierId::base, "base", "any device with Vulkan 1.1", [](const DeviceTraits&) { return true; },
     [](const DeviceTraits&) -> std::string_view { return ""; }},
};

}  // namespace

std::span<const TierRow> tier_rows() { return rows; }

const TierRow& row_of(TierId id) { return *std::ranges::find(rows, id, &TierRow::id); }

const TierRow* find_tier(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &TierRow::name);
  return found == std::end(rows) ? nullptr : found;
}

std::vector<std::string_view> tier_names() {
  std::vector<std::string_view> names;
  for (const TierRow& row : rows) names.push_back(row.name);
  return names;
}

std::vector<std::size_t> tiers_for(const DeviceTraits& device, std::span<const std::string_view> names) {
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const TierRow* row = find_tier(names[i]); row && row->lacking(device).empty()) able.push_back(i);
  const auto rank = [&](std::size_t i) {
    const TierRow* row = find_tier(names[i]);
    return std::tuple(!row->made_for(device), row);
  };
  std::ranges::sort(able, [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return able;
}

}  // namespace tosaic::vulkan_program
