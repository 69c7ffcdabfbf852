// SPDX-License-Identifier: Apache-2.0
// Accumulators finished by vectors, on every instruction set of this machine, are those that scaling.h defines.
#include <gtest/gtest.h>
#include <algorithm>
#include <random>

#include <hwy/targets.h>

#include "ethosu/finish_kernel.h"

namespace tosaic::ethosu {
namespace {

constexpr std::int64_t most_channels = 41, first_channel = 3, pixels = 5;
constexpr std::int64_t zero_point = -7, low = -100, high = 120;

void use(std::int64_t instruction_set) {
  hwy::SetSupportedTargetsForTest(instruction_set);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void expect_as_defined() {
  std::mt19937_64 random(3);
  for (const Rounding rounding : {Rounding::natural, Rounding::double_round})
    for (std::int64_t channels = 1; channels + first_channel <= most_channels; ++channels) {
      NarrowScales narrow;
      std::vector<Scale> scales;
      std::vector<std::int64_t> bias;
      for (std::int64_t c = 0; c < most_channels; ++c) {
        // Of all sizes; a result of a few hundred at most, so that it is not always clipped.
        scales.push_back({static_cast<std::uint32_t>(random() >> (33 + random() % 20)),
                          static_cast<std::uint8_t>(random() % 8 == 0 ? 0 : random() % 62)});
        bias.push_back((static_cast<std::int64_t>(random()) >> 34) + (random() % 8 == 0 ? std::int64_t{1} << 32 : 0));
        narrow.add(bias.back(), scales.back(), rounding);
      }
      const std::int64_t stride = channels + 2;
      std::vector<std::int32_t> sums(static_cast<std::size_t>(pixels * stride)),
          out(static_cast<std::size_t>(pixels * channels));
      for (std::int32_t& sum : sums) sum = static_cast<std::int32_t>(random() >> (32 + random() % 32)) / 2;
      finish_pixels({narrow, first_channel, channels, zero_point, low, high, sums.data(), pixels, stride, out.data()});
      for (std::int64_t x = 0; x < pixels; ++x)
        for (std::int64_t c = 0; c < channels; ++c) {
          const auto channel = static_cast<std::size_t>(first_channel + c);
          const auto v = static_cast<std::int32_t>(
              static_cast<std::int64_t>(sums[static_cast<std::size_t>(x * stride + c)]) + bias[channel]);
          const std::int64_t wanted = std::clamp(rescale(v, scales[channel], rounding) + zero_point, low, high);
          ASSERT_EQ(out[static_cast<std::size_t>(x * channels + c)], wanted)
              << v << " * " << scales[channel].multiplier << " >> " << int{scales[channel].shift};
        }
    }
}

TEST(Finish, IsScaledAsDefined) {
  for (const std::int64_t set : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(set));
    use(set);
    expect_as_defined();
  }
  use(0);
}

}  // namespace
}  // namespace tosaic::ethosu
