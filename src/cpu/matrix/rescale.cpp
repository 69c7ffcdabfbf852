// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/rescale.h"

namespace tosaic::cpu {

RescaleColumns rescale_columns(std::span<const std::int32_t> multiplier, std::span<const std::int8_t> shift,
                               std::int64_t columns, int lanes) {
  const auto padded = static_cast<std::size_t>((columns + lanes - 1) / lanes * lanes);
  RescaleColumns result{Lines<std::int32_t>(padded, 0), Lines<std::int32_t>(padded, 1), Lines<std::int32_t>(padded, 0)};
  for (std::size_t j = 0; j < static_cast<std::size_t>(columns); ++j) {
    const std::size_t from = multiplier.size() == 1 ? 0 : j;
    result.multiplier[j] = multiplier[from];
    result.shift[j] = shift[from] - 32;
    result.round[j] = std::int32_t{1} << (shift[from] - least_column_shift);
  }
  return result;
}

}  // namespace tosaic::cpu
