// SPDX-License-Identifier: Apache-2.0
// The polynomials are Chebyshev fits of the named functions on the named intervals, made for this file.
#include "shaders/functions.h"

#include <limits>

namespace tosaic::shaders {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Value polynomial(Value x, std::initializer_list<double> coefficients) {
  Shader& s = *x.shader;
  auto c = std::rbegin(coefficients);
  Value sum = s.real(*c++);
  for (; c != std::rend(coefficients); ++c) sum = add_product(s.real(*c), sum, x);
  return sum;
}

Value magnitude(Value x) { return x.shader->real_of(x.shader->bits_of(x) & 0x7fffffff); }
Value with_sign(Value size, Value of) {
  Shader& s = *size.shader;
  return s.real_of(s.bits_of(size) | (s.bits_of(of) & 0x80000000ll));
}
Value nan_kept(Value x, Value result) { return x.shader->select(is_nan(x), x, result); }
Value not_a_number(Shader& s) { return s.real_of(s.integer(0x7fc00000)); }
Value infinite(Shader& s) { return s.real(infinity); }

// 2^n, n in -126..127
Value power_of_two(Value n) { return n.shader->real_of((n + 127) << n.shader->integer(23)); }

// Quarter turns of an angle that is not negative, and the rest of it, between -pi/4 and pi/4.
struct Turned {
  Value quadrant, rest;
};

Turned turn_small(Value x) {
  Shader& s = *x.shader;
  const Value n = s.call(Function::round_even, {x * s.real(0.636619772367581343)});
  // pi/2 in four pieces, of which three have so few bits that their products with a small n are exact.
  Value r = x - n * s.real(1.5703125);
  r = r - n * s.real(4.8375129699707031e-4);
  r = r - n * s.real(7.5494716839353509e-8);
  return {s.real_to_signed(n), r - n * s.real(5.1263846264e-12)};
}

// x = m * 2^(e - 23). Bits of 2/pi that give whole turns with m are left out; of the product with 64 further ones the
// highest two are the quadrant (Payne and Hanek).
Turned turn_large(Value x) {
  Shader& s = *x.shader;
  const std::int64_t digits[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                 0xf534ddc0, 0xdb629599, 0x3c439041};  // behind 32 zeros
  const Value bits = s.bits_of(x), m = (bits & 0x7fffff) | s.integer(0x800000);
  const Value start = shift_right_unsigned(bits, s.integer(23)) - (127 - 7);
  const Value word = shift_right_unsigned(start, s.integer(5)), by = start & 31;
  const auto digit = [&](int behind) {
    Value chosen = s.integer(digits[behind]);
    for (int i = 1; i <= 4; ++i) chosen = s.select(word == i, s.integer(digits[i + behind]), chosen);
    return chosen;
  };
  const Value first = digit(0), second = digit(1), third = digit(2), none = s.integer(0);
  const auto joined = [&](Value high, Value low) {
    return (high << by) | s.select(by == 0, none, shift_right_unsigned(low, (s.integer(32) - by) & 31));
  };
  const Value low = s.wide_product(m, joined(second, third), false);
  const Value top = low.high_word() + m * joined(first, second);
  const Value quadrant = shift_right_unsigned(top + 0x20000000, s.integer(30));
  const Value part = (top << s.integer(2)) | shift_right_unsigned(low.low_word(), s.integer(30));
  return {quadrant, s.signed_to_real(part) * s.real(1.57079632679489662 / 4294967296.0)};
}

// The sine of x + quarters * pi/2.
Value turned_sine(Value x, std::int64_t quarters) {
  Shader& s = *x.shader;
  const Value size = magnitude(x), is_small = size < s.real(128);
  const Turned small = turn_small(s.select(is_small, size, s.real(0)));
  const Turned large = turn_large(s.select(is_small, s.real(128), size));
  const Value negative = s.bits_of(x) < 0;
  Value n = s.select(is_small, small.quadrant, large.quadrant), r = s.select(is_small, small.rest, large.rest);
  n = s.select(negative, -n, n) + quarters;
  r = s.select(negative, -r, r);
  const Value z = r * r;
  const Value sine = r + r * z * polynomial(z, {-0.1666666463, 0.008332742675, -0.0001958666487});
  const Value cosine =
      s.real(1) - s.real(0.5) * z + z * z * polynomial(z, {0.04166666463, -0.001388829737, 2.45467035e-05});
  const Value value = s.select((n & 1) == 0, sine, cosine);
  const Value signed_value = s.select((n & 2) == 0, value, -value);
  return s.select(size < infinite(s), signed_value, not_a_number(s));
}

}  // namespace

Value exponential(Value x) {
  Shader& s = *x.shader;
  // Far enough out for 0 and infinity.
  const Value bounded = s.select(x > s.real(100), s.real(100), s.select(x < s.real(-110), s.real(-110), x));
  const Value n = s.call(Function::round_even, {bounded * s.real(1.44269504088896341)});
  const Value r = bounded - n * s.real(0.693359375) - n * s.real(-2.12194440054690583e-4);
  const Value p =
      s.real(1) +
      (r + r * r * polynomial(r, {0.5000000014, 0.166665734, 0.04166645687, 0.008363769614, 0.001393453425}));
  const Value whole = s.real_to_signed(n), half = shift_right_signed(whole, s.integer(1));
  return nan_kept(x, p * power_of_two(half) * power_of_two(whole - half));
}

Value logarithm(Value x) {
  Shader& s = *x.shader;
  const Value tiny = x < s.real(1.17549435e-38);
  const Value scaled = s.select(tiny, x * s.real(16777216), x);
  // bits - those of sqrt(1/2): the exponent that leaves a factor in sqrt(1/2) .. sqrt(2)
  const Value bits = s.bits_of(scaled);
  const Value exponent = shift_right_signed(bits - 0x3f3504f3, s.integer(23));
  const Value f = s.real_of(bits - (exponent << s.integer(23))) - s.real(1);
  const Value e = s.signed_to_real(exponent - s.select(tiny, s.integer(24), s.integer(0)));
  const Value p = polynomial(f, {0.3333333119, -0.2499998908, 0.2000070809, -0.1666847672, 0.1424990966, -0.1241113054,
                                 0.1166190285, -0.1157070737, 0.07147885646});
  const Value z = f * f;
  const Value part = f * z * p + e * s.real(-2.12194440054690583e-4) - s.real(0.5) * z;
  const Value result = f + part + e * s.real(0.693359375);
  const Value zero = s.real(0);
  const Value bounded = s.select(x == infinite(s), x, s.select(x == zero, s.real(-infinity), result));
  return nan_kept(x, s.select(x < zero, not_a_number(s), bounded));
}

Value power(Value base, Value exponent) {
  Shader& s = *base.shader;
  const Value result = exponential(exponent * logarithm(base));
  const Value zero = s.real(0), one = s.real(1);
  return s.select((exponent == zero) | (base == one), one, s.select(base == zero, zero, result));
}

Value sine(Value x) { return turned_sine(x, 0); }
Value cosine(Value x) { return turned_sine(x, 1); }

Value hyperbolic_tangent(Value x) {
  Shader& s = *x.shader;
  const Value size = magnitude(x), z = x * x;
  const Value near =
      size + size * z * polynomial(z, {-0.3333332861, 0.1333273279, -0.05384498898, 0.02096818698, -0.0060536974});
  const Value far = s.real(1) - s.real(2) / (exponential(size + size) + s.real(1));
  return nan_kept(x, with_sign(s.select(size < s.real(0.625), near, far), x));
}

Value sigmoid(Value x) {
  Shader& s = *x.shader;
  // exp of something not positive: no infinities on the way.
  const Value e = exponential(-magnitude(x));
  return nan_kept(x, s.select(x < s.real(0), e, s.real(1)) / (s.real(1) + e));
}

Value error_function(Value x) {
  Shader& s = *x.shader;
  const Value size = magnitude(x), z = x * x;
  const Value near = size + size * polynomial(z, {0.1283791659, -0.376126269, 0.1128359746, -0.0268543288,
                                                  0.005189311943, -0.0008018854992, 7.882497108e-05});
  const Value bounded = s.select(size > s.real(4), s.real(4), size);
  const Value far = s.real(1) - exponential(-polynomial(
                                    bounded, {-0.0003032129659, 1.130166675, 0.6319370937, 0.1099782451, -0.02636471735,
                                              0.004740222337, -0.0005927695369, 4.559062234e-05, -1.614061598e-06}));
  return nan_kept(x, with_sign(s.select(size < s.real(1), near, far), x));
}

Value reciprocal(Value x) {
  Shader& s = *x.shader;
  const Value first = s.real(1) / x;
  const Value better = add_product(first, first, add_product(s.real(1), -x, first));
  const Value size = magnitude(x);
  return s.select((size > s.real(1e-37)) & (size < s.real(1e37)), better, first);
}

Value rounded_reciprocal(Value x) {
  Shader& s = *x.shader;
  const Value first = reciprocal(x), size = magnitude(x);
  const auto split = [&](Value a) {  // into two of 12 bits each, whose products are exact
    const Value c = a * s.real(4097), high = c - (c - a);
    return std::pair(high, a - high);
  };
  const auto [x_high, x_low] = split(x);
  const auto [high, low] = split(first);
  const Value product = x * first;
  const Value lost = ((x_high * high - product) + x_high * low + x_low * high) + x_low * low;
  const Value better = first + first * ((s.real(1) - product) - lost);
  return s.select((size > s.real(1e-30)) & (size < s.real(1e30)), better, first);
}

Value reciprocal_root(Value x) {
  Shader& s = *x.shader;
  const Value first = s.call(Function::inverse_sqrt, {x});
  const Value better = add_product(first, first, add_product(s.real(0.5), -(x * first), s.real(0.5) * first));
  const Value zero = s.real(0);
  const Value edge = s.select(x == zero, with_sign(infinite(s), x), s.select(x == infinite(s), zero, not_a_number(s)));
  return nan_kept(x, s.select((x > zero) & (x < infinite(s)), better, edge));
}

Value larger(Value a, Value b, bool ignore_nan) {
  Shader& s = *a.shader;
  if (a.kind != Kind::real) return largest(a, b);
  const Value chosen = s.select(a >= b, a, b);
  const Value a_nan = is_nan(a), b_nan = is_nan(b);
  if (ignore_nan) return s.select(a_nan, b, s.select(b_nan, a, chosen));
  return s.select(a_nan | b_nan, not_a_number(s), chosen);
}

Value smaller(Value a, Value b, bool ignore_nan) {
  Shader& s = *a.shader;
  if (a.kind != Kind::real) return smallest(a, b);
  const Value chosen = s.select(a < b, a, b);
  const Value a_nan = is_nan(a), b_nan = is_nan(b);
  if (ignore_nan) return s.select(a_nan, b, s.select(b_nan, a, chosen));
  return s.select(a_nan | b_nan, not_a_number(s), chosen);
}

}  // namespace tosaic::shaders
