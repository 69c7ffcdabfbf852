// SPDX-License-Identifier: Apache-2.0
// How blocks of floats are rounded to block-scaled elements (ops/definitions/block_scaled.h), in operators that
// TOSA 1.0 has: exact, as only powers of two multiply. `Words` are the operators, on values of its type Value: f32
// whose last dim is a block, but for booleans that compare them, and numbers.
#pragma once
#include <bit>
#include <cmath>
#include <vector>

#include "ops/definitions/block_scaled.h"

namespace tosaic::tosa::block_scaled {

template <class Words>
class Rounding {
 public:
  using Value = typename Words::Value;
  struct Result {
    Value elements, scale;  // scale: [..., 1]
  };

  explicit Rounding(Words words) : w_(std::move(words)) {}

  // `cast`: by casts to the type of elements and back, an 8-bit float.
  Result operator()(Value x, DType element, bool cast) {
    const Form& form = form_of(element);
    const Value largest = w_.greatest_of_block(w_.abs(x));
    // The least scale, 2^-127, is no normal number of f32: the search begins above it.
    const Powers powers = least_powers(largest, form.greatest, least_scale + 1, {64, 64, 64, 32, 16, 8, 4, 2, 1});
    const Value beyond = w_.greater(largest, w_.number(std::ldexp(form.greatest, least_scale), x));
    const Value up = w_.select(beyond, powers.up, w_.number(std::ldexp(1, least_scale), x)),
                down = w_.select(beyond, powers.down, w_.number(std::ldexp(1, -least_scale), x));
    const Value moved = w_.mul(x, down);
    // NaN where an element is none, or infinite.
    const Value scale = w_.add(up, w_.sub(largest, largest));
    return {cast ? w_.cast(w_.cast(moved, element), DType::f32) : elements(moved, form), scale};
  }

 private:
  // 2^e and 2^-e.
  struct Powers {
    Value up, down;
  };

  // With the least e for which `magnitude` is not greater than bound * 2^e: of those from `first` on, as far as `steps`
  // reach.
  Powers least_powers(Value magnitude, double bound, int first, const std::vector<int>& steps) {
    Powers found{w_.number(std::ldexp(1, first), magnitude), w_.number(std::ldexp(1, -first), magnitude)};
    const Value one = w_.number(1, magnitude);
    for (const int step : steps) {
      const Value limit = w_.mul(found.up, w_.number(std::ldexp(bound, step - 1), magnitude));
      const Value beyond = w_.greater(magnitude, limit);
      const auto moved = [&](Value power, int by) {
        return w_.mul(w_.select(beyond, w_.number(std::ldexp(1, by), magnitude), one), power);
      };
      found = {moved(found.up, step), moved(found.down, -step)};
    }
    return found;
  }

  Value whole(Value x) { return w_.cast(w_.cast(x, DType::i8), DType::f32); }

  // Numbers of magnitudes up to the type's greatest, rounded to it.
  Value elements(Value x, const Form& form) {
    x = w_.clamp_or_nan_to_least(x, form.greatest);
    const int least_step = form.least_exponent - form.mantissa, binades = form.greatest_exponent - form.least_exponent;
    if (binades == 0)
      return w_.mul(whole(w_.mul(x, w_.number(std::ldexp(1, -least_step), x))),
                    w_.number(std::ldexp(1, least_step), x));
    std::vector<int> steps;
    for (int step = static_cast<int>(std::bit_floor(static_cast<unsigned>(binades))); step > 0; step /= 2)
      steps.push_back(step);
    // A number from 2^e to 2^(e + 1) is a multiple of 2^(e - mantissa), as the upper end is in any case.
    const Powers step = least_powers(w_.abs(x), std::ldexp(2, form.mantissa), least_step, steps);
    return w_.mul(whole(w_.mul(x, step.down)), step.up);
  }

  Words w_;
};

}  // namespace tosaic::tosa::block_scaled
