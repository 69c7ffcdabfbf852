// SPDX-License-Identifier: Apache-2.0
// The loops over all weights and activations against one element at a time, on every instruction set of this machine.
#include "simd/bulk_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <hwy/targets.h>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

// Values of all sizes, ties of quantised values among them, and what is not a number.
std::vector<float> floats(std::size_t n, std::uint64_t seed, bool finite) {
  std::mt19937_64 random(seed);
  std::vector<float> x(n);
  for (float& v : x) {
    const auto kind = random() % 10;
    const float unit = static_cast<float>(random() % 2'000'001) / 1e6f - 1;
    v = kind == 0   ? 0
        : kind == 1 ? unit * 1e-41f
        : kind == 2 ? unit * 1e30f
        : kind < 6  ? std::round(unit * 300) / 2
                    : unit;
    if (!finite && random() % 7 == 0) v = random() % 2 ? nan : random() % 2 ? infinity : -infinity;
  }
  return x;
}

template <class F>
void everywhere(const F& f) {  // f(elements): lengths around those of vectors
  for (const std::int64_t set : instruction_sets()) {
    use(set);
    SCOPED_TRACE(hwy::TargetName(set));
    for (std::size_t n = 0; n < 70; ++n)
      for (const bool finite : {false, true}) f(floats(n, n * 2 + finite, finite));
  }
  use(0);
}

TEST(BulkLoops, Extremes) {
  everywhere([](const std::vector<float>& x) {
    float lowest = 0, highest = 0;
    bool all_finite = true;
    for (float v : x) {
      all_finite &= std::isfinite(v);
      if (std::isfinite(v)) lowest = std::min(lowest, v);
      if (std::isfinite(v)) highest = std::max(highest, v);
    }
    const simd::Extremes found = simd::bulk_loops().extremes(x.data(), x.size());
    EXPECT_EQ(found.lowest, lowest);
    EXPECT_EQ(found.highest, highest);
    EXPECT_EQ(found.all_finite, all_finite);
  });
}

TEST(BulkLoops, Magnitudes) {
  everywhere([](const std::vector<float>& x) {
    float smallest = infinity, largest = 0;
    for (float v : x) {
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
      if (std::isfinite(v) && v != 0) smallest = std::min(smallest, std::fabs(v));
    }
    const simd::Magnitudes found = simd::bulk_loops().magnitudes(x.data(), x.size());
    EXPECT_EQ(found.smallest, smallest);
    EXPECT_EQ(found.largest, largest);
  });
}

TEST(BulkLoops, CodesAreTheNearest) {
  everywhere([](const std::vector<float>& x) {
    for (const double scale : {0.5, 1.0, 0.0123, 1e-12}) {
      std::vector<std::int8_t> codes(x.size());
      for (const double highest : {127.0, 7.0}) {
        simd::bulk_loops().encode(x.data(), x.size(), scale, highest, codes.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double exact = std::isnan(x[i]) ? 0 : std::clamp(x[i] * (1 / scale), -highest, highest);
          EXPECT_EQ(codes[i], static_cast<int>(std::nearbyint(exact))) << x[i] << " / " << scale;
        }
      }
    }
  });
}

TEST(BulkLoops, CodingErrors) {
  float scales[16];
  for (int s = 0; s < 16; ++s) scales[s] = 0.0123f * static_cast<float>(s * s + 1);
  std::vector<float> first;  // the same on every instruction set, bit for bit
  for (const std::int64_t set : instruction_sets()) {
    use(set);
    SCOPED_TRACE(hwy::TargetName(set));
    std::vector<float> all;
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<float> x = floats(n, n, true);
      for (float& v : x) v = std::fmod(v, 100.0f);
      float errors[16] = {};
      simd::bulk_loops().coding_errors(x.data(), n, scales, 7, errors);
      for (int s = 0; s < 16; ++s) {
        double exact = 0;
        for (const float v : x) {
          const double off = v - std::nearbyint(std::clamp(v * (1 / scales[s]), -7.0f, 7.0f)) * scales[s];
          exact += off * off;
        }
        EXPECT_NEAR(errors[s], exact, 1e-5 * exact) << n << " elements, scale " << scales[s];
        all.push_back(errors[s]);
      }
    }
    if (first.empty()) first = all;
    EXPECT_EQ(first, all);
  }
  use(0);
}

TEST(BulkLoops, FourBits) {
  everywhere([](const std::vector<float>& random) {
    std::vector<float> x = random;
    for (float& v : x) v = std::fmod(v, 100.0f);
    float largest = 0;
    for (const float v : x)
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    float scales[16], errors[16] = {};
    simd::bulk_loops().four_bit_scales(largest, scales);
    for (int s = 0; s < 16; ++s) {
      const float exact = std::max(largest / 7, 1e-12f) * (1 - 0.04f * static_cast<float>(s));
      const float below = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact) & 0xffff0000u),
                  above = std::bit_cast<float>((std::bit_cast<std::uint32_t>(exact) & 0xffff0000u) + 0x10000u);
      EXPECT_TRUE(scales[s] == below || scales[s] == above) << exact;
      EXPECT_LE(std::fabs(scales[s] - exact), (above - below) / 2) << exact;
    }
    simd::bulk_loops().coding_errors(x.data(), x.size(), scales, 7, errors);
    const float best = scales[std::min_element(std::begin(errors), std::end(errors)) - std::begin(errors)];
    std::vector<std::int8_t> values(x.size()), wanted(x.size());
    EXPECT_EQ(simd::bulk_loops().four_bits(x.data(), x.size(), values.data()), best);
    simd::bulk_loops().encode(x.data(), x.size(), best, 7, wanted.data());
    EXPECT_EQ(values, wanted);
  });
}

TEST(BulkLoops, ScaledAsInDouble) {
  everywhere([](const std::vector<float>& x) {
    std::vector<float> scaled(x.size());
    simd::bulk_loops().scale(x.data(), x.size(), 1.0 / 3, scaled.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<float>(x[i] * (1.0 / 3));
      EXPECT_TRUE(scaled[i] == exact || (std::isnan(scaled[i]) && std::isnan(exact))) << x[i] << " " << scaled[i];
    }
  });
}

TEST(BulkLoops, SumsAreThoseOfDoubles) {
  everywhere([](const std::vector<float>& x) {
    std::vector<double> sums(x.size(), 0.1);
    for (int i = 0; i < 2; ++i) simd::bulk_loops().add(x.data(), x.size(), sums.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double sum = 0.1 + static_cast<double>(x[i]) + static_cast<double>(x[i]);
      EXPECT_TRUE(sums[i] == sum || (std::isnan(sums[i]) && std::isnan(sum))) << x[i];
    }
  });
}

TEST(BulkLoops, MeasuresColumns) {
  everywhere([](const std::vector<float>& x) {
    std::vector<float> lowest(x.size(), -0.25f), highest(x.size(), 0.25f);
    std::vector<double> squares(x.size(), 0.5);
    simd::bulk_loops().measure(x.data(), x.size(), lowest.data(), highest.data(), squares.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i])) {
        EXPECT_FALSE(std::isfinite(squares[i]));
        continue;
      }
      EXPECT_EQ(lowest[i], std::min(-0.25f, x[i]));
      EXPECT_EQ(highest[i], std::max(0.25f, x[i]));
      EXPECT_EQ(squares[i], 0.5 + static_cast<double>(x[i]) * x[i]);
    }
  });
}

TEST(BulkLoops, WhatRoundingLosesOfProducts) {
  everywhere([](const std::vector<float>& weights) {
    std::vector<std::int8_t> values(weights.size());
    std::vector<double> x(weights.size());
    double exact = 0, largest = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      values[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 256) - 128);
      x[i] = std::sin(static_cast<double>(i));
      const double product = (weights[i] - values[i] * 0.0123) * x[i];
      exact += product;
      largest = std::max(largest, std::fabs(product));
    }
    const double found = simd::bulk_loops().lost(weights.data(), values.data(), values.size(), 0.0123, x.data());
    if (std::isfinite(exact))
      EXPECT_NEAR(found, exact, 1e-13 * largest);
    else
      EXPECT_FALSE(std::isfinite(found));
  });
}

TEST(BulkLoops, BinsHoldTheirElements) {
  everywhere([](const std::vector<float>& x) {
    std::vector<std::uint32_t> bins(x.size());
    simd::bulk_loops().bins(x.data(), x.size(), -1.0f, 1024.0f, 2047, bins.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float at = (x[i] + 1.0f) * 1024.0f;
      EXPECT_EQ(bins[i], at >= 2047 ? 2047u : at > 0 ? static_cast<unsigned>(at) : 0u) << x[i];
    }
  });
}

}  // namespace
}  // namespace tosaic::test
