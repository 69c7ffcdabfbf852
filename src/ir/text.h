// SPDX-License-Identifier: Apache-2.0
// What print, parse and verify agree on: the spelling of names, and which types can exist. Private to ir/.
//
//   graph @main(%x: 1x3x8x8xf32, %y: 4xi8<0.02:3>) -> (%out) {
//     %w: 3xf32 = constant [1.0, 2.0, 3.0]
//     %0: 1x8x8x8xf32 = tosa.conv2d(%x, %w, none) {pad=[0, 0, 0, 0], round=true} loc("model.py":6 "y = self.conv(x)")
//     %c: f32 = tosa.cond_if(%p) (
//       graph @then() -> (...) {...}
//     )
//     state "k" %buf -> %new
//     guard "x.size()[0] % 2 == 0" (s0 % 2 for s0 in 2..16)
//   }
//
// Names that are not plain (letters, digits, '_', '.') are quoted: %"a b". An absent operand or result is `none`.
// Attribute values: none, true, 3, 1.0, "text", [1, 2], [1.0], ["a"], [floats] and [strings] for empty lists
// ([] is an empty list of integers), f32 (a dtype), $mul (an argument known at run time), [$mul, 4] (some of a list).
// A dim that is no number stands in brackets: (s77 in 1..16)x4xf32, (2*s77 + 1 for s77 in 1..16)xf32. So does what an
// integer is that follows from sizes: %mul: i64(2*s77 for s77 in 1..16), $mul(2*s77 for s77 in 1..16).
// What a state is read from is declared by  %buf: 2xf32 = state "k" = [0.0, 1.0]  with what it holds at first, which
// may be left out: zeros.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/quoted.h"
#include "ir/type.h"

namespace tosaic::text {

// Graphs nest (control flow bodies); more than this is refused, so that recursion stays bounded.
inline constexpr int max_nesting = 64;
// Constants with at most this many elements are written as numbers.
inline constexpr std::int64_t max_listed_elements = 8;

inline bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool is_plain_name(std::string_view name);
std::string number(double value);  // always with a '.', an exponent, inf or nan in it

// Why no tensor can have this type; empty: one can.
std::optional<std::string> type_problem(const TensorType& type);

}  // namespace tosaic::text
