// SPDX-License-Identifier: Apache-2.0
// 128 bits in two words are the compiler's 128 bits.
#include <gtest/gtest.h>
#include <random>

#include "ethosu/wide.h"

namespace tosaic::ethosu {
namespace {

#ifdef __SIZEOF_INT128__
__extension__ using Native = __int128;

Native native(TwoWords value) {
  __extension__ using Unsigned = unsigned __int128;
  return static_cast<Native>(Unsigned{static_cast<std::uint64_t>(value.high)} << 64 | value.low);
}

// Numbers of all magnitudes, with the edges among them.
std::int64_t draw(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0: return 0;
    case 1: return INT64_MIN;
    case 2: return INT64_MAX;
    case 3: return -1;
    default: return static_cast<std::int64_t>(random()) >> random() % 64;
  }
}

TEST(TwoWords, ComputesAsTheCompiler) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::int64_t a = draw(random), b = draw(random);
    const TwoWords product = TwoWords{a} * TwoWords{b};
    ASSERT_TRUE(native(product) == Native{a} * b) << a << " * " << b;
    const TwoWords x{static_cast<std::uint64_t>(draw(random)), draw(random) >> 2};
    const TwoWords y{static_cast<std::uint64_t>(draw(random)), draw(random) >> 2};
    ASSERT_TRUE(native(x + y) == native(x) + native(y));
    ASSERT_TRUE(native(x - y) == native(x) - native(y));
    ASSERT_EQ(x < y, native(x) < native(y));
    ASSERT_EQ(x > y, native(x) > native(y));
    ASSERT_EQ(static_cast<std::int64_t>(x), static_cast<std::int64_t>(native(x)));
    const int by = static_cast<int>(random() % 128);
    ASSERT_TRUE(native(x >> by) == native(x) >> by) << by;
    ASSERT_TRUE(native(TwoWords{1} << by) == Native{1} << by) << by;
  }
}
#endif

}  // namespace
}  // namespace tosaic::ethosu
