// SPDX-License-Identifier: Apache-2.0
#include "formats/pte/layout.h"

#include <array>
#include <utility>

namespace tosaic::pte {
namespace {
using Scalar = pte_schema::ScalarType;
constexpr std::array<std::pair<DType, Scalar>, 12> scalars{{
    {DType::boolean, Scalar::BOOL},
    {DType::u8, Scalar::BYTE},
    {DType::i8, Scalar::CHAR},
    {DType::i16, Scalar::SHORT},
    {DType::i32, Scalar::INT},
    {DType::i64, Scalar::LONG},
    {DType::f16, Scalar::HALF},
    {DType::bf16, Scalar::BFLOAT16},
    {DType::f32, Scalar::FLOAT},
    {DType::f64, Scalar::DOUBLE},
    {DType::f8e4m3, Scalar::FLOAT8E4M3FN},
    {DType::f8e5m2, Scalar::FLOAT8E5M2},
}};
}  // namespace

std::optional<Scalar> scalar_type(DType type) {
  for (auto [ours, theirs] : scalars)
    if (ours == type) return theirs;
  return std::nullopt;
}

std::optional<DType> dtype_of(Scalar type) {
  for (auto [ours, theirs] : scalars)
    if (theirs == type) return ours;
  return std::nullopt;
}

}  // namespace tosaic::pte
