// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "ir/dim.h"

namespace tosaic {

// How a Dim is computed by somebody else's arithmetic: who evaluates gives numbers and symbols names of its own choice.
enum class DimOperator : std::uint8_t { add, mul, floor_div, mod, max, min };
struct DimArithmetic {
  std::function<std::int32_t(std::int64_t)> number;
  std::function<std::int32_t(const Symbol&)> symbol;
  std::function<std::int32_t(DimOperator, std::int32_t, std::int32_t)> apply;
};
std::int32_t evaluate(const Dim& dim, const DimArithmetic& in);

}  // namespace tosaic
