// SPDX-License-Identifier: Apache-2.0
#include "c_source/types.h"

#include <fmt/format.h>
#include <cmath>
#include <limits>

#include "ir/tensor.h"

namespace tosaic::c_source {

std::string c_number(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
  if (value == INT32_MIN) return "INT32_MIN";  // C reads -2147483648 as the negative of a number that fits no int
  return value > INT32_MAX || value < INT32_MIN ? fmt::format("INT64_C({})", value) : fmt::format("{}", value);
}

std::string c_number(double value) {
  const auto narrow = static_cast<float>(value);
  if (std::isnan(narrow)) return "NAN";
  if (std::isinf(narrow)) return narrow < 0 ? "-INFINITY" : "INFINITY";
  const std::string text = fmt::format("{}", narrow);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

std::string c_element(DType type, const void* data, std::size_t i) {
  return is_float(type) ? c_number(element_as_double(type, data, i)) : c_number(element_as_integer(type, data, i));
}

}  // namespace tosaic::c_source
