// SPDX-License-Identifier: Apache-2.0
// The loops in which normalisation and quantisation look at every weight and every activation, in vectors.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic::simd {

// Of finite elements; smallest: above zero, infinity when there is none.
struct Magnitudes {
  float smallest, largest;
};

// Of finite elements and zero.
struct Extremes {
  float lowest, highest;
  bool all_finite;  // no element is NaN or infinite
};

struct Int8Extremes {
  std::int8_t lowest, highest;
};

struct BulkLoops {
  Extremes (*extremes)(const float* x, std::size_t n);
  Magnitudes (*magnitudes)(const float* x, std::size_t n);
  Int8Extremes (*int8_extremes)(const std::int8_t* x, std::size_t n);  // of at least one element
  // q = x / scale to the nearest integer (ties to even) in [-highest, highest], 127 at most, computed in double;
  // NaN is 0.
  void (*encode)(const float* x, std::size_t n, double scale, double highest, std::int8_t* values);
  // To each errors[s] adds the sum of (x - code * scales[s])^2, where code = x / scales[s] to the nearest integer in
  // [-highest, highest]. In float, one element after the other: who chooses by it chooses the same on every machine.
  void (*coding_errors)(const float* x, std::size_t n, const float (&scales)[16], float highest, float (&errors)[16]);
  // Scales to try for values in [-7, 7] of numbers up to `largest`: from the one at which that is 7, downwards. Each is
  // a bfloat16: with so few bits of a quantised value its rounding is nothing, and where groups are small it is half of
  // what there is to read of them.
  void (*four_bit_scales)(float largest, float (&scales)[16]);
  // Quantises to values in [-7, 7] with the one of these scales, which is returned, that has the least error: the same
  // on every machine.
  float (*four_bits)(const float* x, std::size_t n, std::int8_t* values);
  // bins = (x - low) * per_unit in float, truncated, in [0, last]; NaN is 0.
  void (*bins)(const float* x, std::size_t n, float low, float per_unit, std::uint32_t last, std::uint32_t* bins);
  // to = x * factor, computed in double.
  void (*scale)(const float* x, std::size_t n, double factor, float* to);
  // sums += x.
  void (*add)(const float* x, std::size_t n, double* sums);
  // lowest = min(lowest, x), highest = max(highest, x), squares += x^2, computed in double.
  void (*measure)(const float* x, std::size_t n, float* lowest, float* highest, double* squares);
  // The sum of (w - value * scale) * x, computed in double.
  double (*lost)(const float* w, const std::int8_t* values, std::size_t n, double scale, const double* x);
};
const BulkLoops& bulk_loops();

}  // namespace tosaic::simd
