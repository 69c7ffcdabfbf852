// SPDX-License-Identifier: Apache-2.0
// Block-scaled tensors (TOSA 1.1, EXT-MXFP; OCP Microscaling 1.0): elements [..., C] of a narrow type, and for each
// block of 32 neighbours along the last dim a power of two, the scale, [..., C / 32]. Private to src/ops.
#pragma once
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa::block_scaled {

inline constexpr std::int64_t block = 32;
inline constexpr const char* size = "block_size";
inline constexpr std::string_view scale_type = "f8ue8m0";

inline AttrDef size_attribute() { return {size, AttrKind::i32}; }
// Of each type of elements, bound to `variable`.
TypeRows elements(std::string_view variable);
TypeRows elements_and_floats(std::string_view variable, std::string_view real);
// "<op>.block-size", "<op>.blocks": the attribute is 32, the last dim is whole blocks, which have a scale each.
Check check(const View& view, std::size_t elements, std::size_t scales);
Shape scales_shape(const Shape& elements);
// A type of elements: bits of the mantissa, and the exponents of its normal numbers. Multiples of 1/64 are a mantissa
// of 6 bits with one exponent.
struct Form {
  DType type;
  int mantissa, least_exponent, greatest_exponent;
  double greatest;
};
const Form& form_of(DType element);
// Exponents of scales are between this and its negative.
inline constexpr int least_scale = -Float8UE8M0::bias;
// e of the scale 2^e of a block: the least for which no element is greater than the type's greatest; of zeros the least
// that there is. (The draft's rounding, cuBLAS's "RCEIL".)
int exponent_for(double largest, DType element);

// Elements times their scales.
std::vector<double> as_doubles(const TensorView& elements, const TensorView& scales);

// ---- in operators of TOSA 1.0
// f32 of the elements times their scales.
ValueId as_floats(extension::Definition& d, ValueId elements, ValueId scales);
// A float tensor whose last dim is whole blocks, rounded to elements of a type: f32 of the elements, not scaled, and of
// the scales.
struct Rounded {
  ValueId elements, scales;
};
Rounded rounded(extension::Definition& d, ValueId x, DType element);

// The type of TOSA 1.0 that holds all numbers of a type that block-scaled tensors alone have; others stay.
DType carrier(DType type);

}  // namespace tosaic::tosa::block_scaled
