// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of real tensors and of pairs (complex_pairs.h), as products with constant matrices of cosines and
// sines: of any length, along any dim, exact to the rounding of a sum. Private to normalise/.
#pragma once
#include <optional>
#include <string_view>

#include "ops/op.h"

namespace tosaic::pairs {

enum class Of : std::uint8_t { real, pairs };

// Real numbers as complex ones.
Val with_zeros(Val x);

// aten.fft_* and aten._fft_*: the schema that a call's arguments follow, as PyTorch prints it; empty: not of these.
std::string_view fourier_schema(std::string_view name);
// `x` is a real tensor, or the pairs of a complex one. Gives pairs, but for fft_irfft*, _fft_c2r. Throws Refusal.
Val fourier(Val x, Of of, const Call& call);

// aten.stft and aten.istft, as convolutions with the transform's matrix under a window.
std::string_view short_time_schema(std::string_view name);
Val short_time(Val x, Of of, const Call& call);

// What a transform is made with: x[t] of `length` numbers and X[k] are bound by exp(sign i 2 pi k t / length).
struct Matrix {
  std::int64_t length;
  std::int64_t rows, columns;  // numbers that go in, and come out: fewer or more than `length` are a part of it
  double sign, factor;
};
// Each [2 * columns, rows], [2 * columns, 2 * rows] and [columns, 2 * rows]: pairs lie next to each other. The last one
// takes the half spectrum of what is real.
Val from_real(Builder& b, const Matrix& m);
Val from_pairs(Builder& b, const Matrix& m);
Val to_real(Builder& b, const Matrix& m);

}  // namespace tosaic::pairs
