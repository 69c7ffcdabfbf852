// SPDX-License-Identifier: Apache-2.0
#include "cpu/net.h"

namespace tosaic::test {

void expect_same(const Tensor& got, const Tensor& wanted, const Tolerance& tolerance, const std::string& what) {
  ASSERT_EQ(to_string(got.type.shape), to_string(wanted.type.shape)) << what;
  const auto count = static_cast<std::size_t>(wanted.type.shape.elements());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count && wrong < 5; ++i) {
    if (!is_float(wanted.type.dtype)) {
      const auto a = element_as_integer(got.type.dtype, got.data.data(), i);
      const auto b = element_as_integer(wanted.type.dtype, wanted.data.data(), i);
      if (a != b)
        ++wrong, ADD_FAILURE() << what << ": element " << i << " of " << count << " is " << a << ", not " << b;
      continue;
    }
    const double a = element_as_double(got.type.dtype, got.data.data(), i);
    const double b = element_as_double(wanted.type.dtype, wanted.data.data(), i);
    const bool same = std::isnan(b)   ? std::isnan(a)
                      : std::isinf(b) ? a == b
                                      : std::fabs(a - b) <= tolerance.absolute + tolerance.relative * std::fabs(b);
    if (!same) ++wrong, ADD_FAILURE() << what << ": element " << i << " of " << count << " is " << a << ", not " << b;
  }
}

}  // namespace tosaic::test
