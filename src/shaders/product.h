// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions whose sums a work group makes together: tiles of both factors are read once by the
// group into memory that it shares. A convolution is the product of its windows and its weights.
#pragma once
#include "shaders/axes.h"

namespace tosaic::shaders {

// Of what a product or a convolution makes: all pixels of all images.
Dim rows_of_product(const tosa::View& view);
// Sums of no more than 32 bits.
bool has_narrow_sums(const tosa::View& view);
// A convolution with them, and with constant weights.
bool has_tiles(const tosa::View& view);
// One of those whose rows are the input's pixels as they lie: one tap, no stride, no padding.
bool is_plain(const tosa::View& view);
// A plain one of few pixels.
bool has_few_rows(const tosa::View& view);
// Convolutions of the same input by weights of that shape (queries, keys and values), this one among them: a device
// computes them all at once.
std::int64_t count_side_by_side(const Work& work, const Node& node);

}  // namespace tosaic::shaders
