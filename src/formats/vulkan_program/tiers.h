// SPDX-License-Identifier: Apache-2.0
// Tiers: one program, made for devices of different kinds. This table is all that the compiler, the runtime and the
// command line know of which there are.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tosaic::vulkan_program {

// Rows of the table, best first.
enum class TierId : std::uint8_t { cpu, coopmat_int8, coopmat, dot, base };

// What of a device decides about tiers.
struct DeviceTraits {
  bool is_cpu = false;                         // a driver that computes on the machine's CPU
  bool storage_8 = false, storage_16 = false;  // buffers of 8-bit and of 16-bit elements
  std::uint32_t subgroup_size = 0;
  bool shuffles = false;  // among the invocations of a subgroup
  // Matrices of f16, 16 x 16, summed in 32 bits, that subgroups of 32 invocations have together.
  bool matrices = false;
  // The same of 16 x 32 by 32 x 16 signed 8-bit integers.
  bool int8_matrices = false;
  // Of four 8-bit quantised values in a word with four others; in one instruction.
  bool dots = false, fast_dots = false;
};

struct TierRow {
  TierId id;
  std::string_view name, sentence;
  // Is it made for this device? Others that have what it needs run it, if there is nothing better.
  bool (*made_for)(const DeviceTraits& device);
  // What it needs and the device lacks, whatever the program is; empty: nothing.
  std::string_view (*lacking)(const DeviceTraits& device);
  // What no module made for it goes beyond.
  std::uint32_t most_invocations = 256, most_shared_bytes = 16 << 10;  // of a group
};

std::span<const TierRow> tier_rows();
const TierRow& row_of(TierId id);
const TierRow* find_tier(std::string_view name);  // nullptr: a name that this version does not know

// Those of `names` that the device may run, best first, as indices in the list.
std::vector<std::size_t> tiers_for(const DeviceTraits& device, std::span<const std::string_view> names);
std::vector<std::string_view> tier_names();

// A set of tiers, for tables of what is made for which.
struct TierSet {
  std::uint32_t bits = 0;
  constexpr bool has(TierId id) const { return bits >> static_cast<std::uint32_t>(id) & 1; }
};
template <class... Ids>
constexpr TierSet tiers_of(Ids... ids) {
  return {((1u << static_cast<std::uint32_t>(ids)) | ... | 0u)};
}
inline constexpr TierSet all_tiers{~0u};

}  // namespace tosaic::vulkan_program
