// SPDX-License-Identifier: Apache-2.0
// Elementwise operators: the loop, the broadcasting rule and the shape rule, so that an operator file only says
// what happens to one element. Floats are computed in double and integers in int64, and stored once.
// Private to src/ops.
#pragma once
#include <cmath>
#include <type_traits>

#include "ops/definitions/row.h"
#include "ops/definitions/walk.h"

namespace tosaic::tosa {

// The shape that shapes of equal rank broadcast to (spec "Broadcast Helpers"); a dim that is not 1 wins.
Shape broadcast_shape(const Shape& a, const Shape& b);
std::vector<TensorType> infer_broadcast(const View& view);   // the type of input 0 in the common shape
std::vector<TensorType> infer_comparison(const View& view);  // bool in the common shape
// "<op>.rank-mismatch", "<op>.broadcast" for operands [0, count).
Check check_broadcast(const View& view, std::size_t count);
inline Check check_binary(const View& view) { return check_broadcast(view, 2); }

__extension__ typedef __int128 Int128;

// What an element is computed in. PyTorch's i64, which outside delegates stays i64, in twice its width.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, std::int64_t>, Int128,
                                std::conditional_t<std::is_integral_v<T>, std::int64_t, double>>;
// Does an integer result fit the type that stores it? i64 is not TOSA's, and wraps as PyTorch's does.
template <class T>
bool fits(Wide<T> value) {
  if constexpr (std::is_same_v<T, std::int64_t>) return true;
  if constexpr (std::is_integral_v<T>) return static_cast<Wide<T>>(static_cast<T>(value)) == value;
  return true;
}

// Calls with the storage type of `type` when it is one that this operator may meet.
template <class F>
void with_float_storage(DType type, F&& f) {
  switch (type) {
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    default: return;
  }
}
template <class F>
void with_integer_storage(DType type, F&& f) {
  switch (type) {
    case DType::boolean:
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::i8: return f.template operator()<std::int8_t>();
    case DType::i16: return f.template operator()<std::int16_t>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    default: return;
  }
}
enum class Domain : std::uint8_t { floats, integers, both };
template <Domain domain, class F>
void with_element(DType type, F&& f) {
  if constexpr (domain != Domain::integers) with_float_storage(type, f);
  if constexpr (domain != Domain::floats) with_integer_storage(type, f);
}

// out = f(in). A result that its integer dtype cannot hold is unpredictable.
template <auto f, Domain domain = Domain::floats>
Status map_unary(const Run& run) {
  std::optional<std::size_t> bad;
  with_element<domain>(run.out[0].type.dtype, [&]<class T>() {
    const auto in = run.in[0].as<T>();
    const auto out = run.out[0].as<T>();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Wide<T> value = f(static_cast<Wide<T>>(in[i]));
      if (!fits<T>(value) && !bad) [[unlikely]]
        bad = i;
      out[i] = T(value);
    }
  });
  if (!bad) return {};
  return unpredictable(
      run, fmt::format("the result for {} does not fit {}",
                       element_as_integer(run.in[0].type.dtype, run.in[0].data, *bad), name_of(run.out[0].type.dtype)));
}

// For `require`: any pair of operands will do.
inline constexpr auto no_requirement = [](auto, auto, int) { return true; };

// The low `bits` bits, sign extended.
inline std::int64_t wrapped(std::int64_t value, int bits) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << (64 - bits)) >> (64 - bits);
}

// out = f(a, b) or f(a, b, bits of the dtype) in the common shape. REQUIREs: require(a, b, bits of the dtype), and
// integer results fit.
template <auto f, Domain domain = Domain::both, auto require = no_requirement>
Status map_binary(const Run& run) {
  const Shape& shape = run.out[0].type.shape;
  const Walk a_walk = broadcasting(run.in[0].type.shape, shape), b_walk = broadcasting(run.in[1].type.shape, shape);
  std::string bad;
  with_element<domain>(run.out[0].type.dtype, [&]<class T>() {
    const T* a = static_cast<const T*>(run.in[0].data);
    const T* b = static_cast<const T*>(run.in[1].data);
    T* out = static_cast<T*>(run.out[0].data);
    for_each_position(
        shape,
        [&](const auto& at) {
          const auto x = static_cast<Wide<T>>(a[at[0]]);
          const auto y = static_cast<Wide<T>>(b[at[1]]);
          constexpr int bits = 8 * sizeof(T);
          const bool allowed = require(x, y, bits);
          Wide<T> value{};
          if constexpr (std::is_invocable_v<decltype(f), Wide<T>, Wide<T>, int>) {
            if (allowed) value = f(x, y, bits);
          } else {
            if (allowed) value = f(x, y);
          }
          if ((!allowed || !fits<T>(value)) && bad.empty()) [[unlikely]]
            bad = allowed
                      ? fmt::format("the result for {} and {} does not fit {}", x, y, name_of(run.out[0].type.dtype))
                      : fmt::format("the operands {} and {} are not allowed", x, y);
          *out++ = T(value);
        },
        a_walk, b_walk);
  });
  if (bad.empty()) return {};
  return unpredictable(run, bad);
}

// out = f(a, b) as a boolean, for comparisons.
template <auto f>
Status map_comparison(const Run& run) {
  const Shape& shape = run.out[0].type.shape;
  const Walk a_walk = broadcasting(run.in[0].type.shape, shape), b_walk = broadcasting(run.in[1].type.shape, shape);
  auto* out = static_cast<std::uint8_t*>(run.out[0].data);
  with_element<Domain::both>(run.in[0].type.dtype, [&]<class T>() {
    const T* a = static_cast<const T*>(run.in[0].data);
    const T* b = static_cast<const T*>(run.in[1].data);
    for_each_position(
        shape, [&](const auto& at) { *out++ = f(static_cast<Wide<T>>(a[at[0]]), static_cast<Wide<T>>(b[at[1]])); },
        a_walk, b_walk);
  });
  return {};
}

// The larger (smaller) of two; NaN as the mode says (spec "Arithmetic Helpers").
template <class T>
T larger(T a, T b, bool ignore_nan) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b))
      return !ignore_nan ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  return a >= b ? a : b;
}
template <class T>
T smaller(T a, T b, bool ignore_nan) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b))
      return !ignore_nan ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  return a < b ? a : b;
}

// ---- whole rows
Op unary_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::string_view operand,
             std::vector<TypeRow> types, Status (*eval)(const Run&));
Op binary_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::vector<TypeRow> types,
              Status (*eval)(const Run&));

}  // namespace tosaic::tosa
