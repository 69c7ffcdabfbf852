// SPDX-License-Identifier: Apache-2.0
#include "delegates/ethos_u/regions.h"

#include <algorithm>

namespace tosaic::delegates {

std::array<std::uint64_t, TOSAIC_ETHOSU_REGIONS> region_bytes(const vela::Payload& payload,
                                                              const tosaic_ethosu_info& info) {
  std::array<std::uint64_t, TOSAIC_ETHOSU_REGIONS> wanted;
  std::copy(std::begin(info.region_bytes), std::end(info.region_bytes), wanted.begin());
  wanted[0] = 0;
  wanted[vela::scratch_region] = payload.scratch_bytes;
  for (const auto* tensors : {&payload.inputs, &payload.outputs})
    for (const vela::Tensor& t : *tensors) {
      std::uint64_t& region = wanted[static_cast<std::size_t>(t.region)];
      region = std::max(region, static_cast<std::uint64_t>(t.offset) + static_cast<std::uint64_t>(t.bytes()));
    }
  return wanted;
}

}  // namespace tosaic::delegates
