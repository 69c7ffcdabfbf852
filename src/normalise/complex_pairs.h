// SPDX-License-Identifier: Apache-2.0
// Complex numbers inside a program. The reader types them as pairs, f32 with a last dim of two (the real part and the
// imaginary one), and marks the calls that give them; here these calls, and those that read their results, become calls
// on real tensors. After it nothing knows of complex numbers.
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace tosaic {

// Whether an operator that is none of ops/aten has a form here, such as "aten.fft_rfft.default".
bool has_form_on_pairs(Operator op);

// Errors: model.complex, for calls that have no form on pairs.
Status say_complex_in_pairs(Graph& graph);

}  // namespace tosaic
