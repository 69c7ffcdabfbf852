// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cpu/window/depthwise_kernel.h"

namespace tosaic::cpu {

template <int... all>
static bool is_one_of(std::int64_t value, std::integer_sequence<int, all...>) {
  return ((value == all) || ...);
}
bool takes_columns(std::int64_t height, std::int64_t width, std::int64_t stride) {
  return height == width && is_one_of(width, ColumnSides()) && is_one_of(stride, ColumnStrides());
}

Lines<std::byte> pack_depthwise(const DepthwisePacking& packing, std::span<const std::int64_t> taps,
                                const std::int8_t* weight, std::int64_t channels, std::int64_t tap_stride,
                                std::int64_t channel_stride, std::int32_t weight_zp) {
  const auto [lanes, group, bytes] = packing;
  const std::int64_t chunks = (channels + lanes - 1) / lanes, groups = (std::ssize(taps) + group - 1) / group;
  Lines<std::byte> packed(static_cast<std::size_t>(chunks * groups * lanes * group * bytes));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t t = 0; t < std::ssize(taps); ++t) {
      const std::int64_t tap = taps[static_cast<std::size_t>(t)];
      if (tap == no_tap) continue;
      const std::int32_t w = weight[tap * tap_stride + c * channel_stride] - weight_zp;
      const std::int64_t at = ((c / lanes * groups + t / group) * lanes + c % lanes) * group + t % group;
      if (bytes == 1) {
        if (w < -128 || w > 127) return {};
        packed[static_cast<std::size_t>(at)] = static_cast<std::byte>(w);
      } else if (bytes == 2) {
        const auto narrow = static_cast<std::int16_t>(w);
        std::memcpy(packed.data() + at * 2, &narrow, 2);
      } else {
        std::memcpy(packed.data() + at * 4, &w, 4);
      }
    }
  return packed;
}

std::vector<std::int64_t> taps_by_columns(std::int64_t height, std::int64_t width, std::int64_t group) {
  std::vector<std::int64_t> taps;
  const std::int64_t lines = (height + group - 1) / group * group;
  for (std::int64_t x = 0; x < width; ++x)
    for (std::int64_t y = 0; y < lines; ++y) taps.push_back(y < height ? y * width + x : no_tap);
  return taps;
}

}  // namespace tosaic::cpu
