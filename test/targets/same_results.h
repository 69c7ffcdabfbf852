// SPDX-License-Identifier: Apache-2.0
// A device's last rewrites, applied to a graph in its text form: they keep every result.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/rewrite_trace.h"

namespace tosaic {

using Ints = std::vector<std::int64_t>;

// `nodes`: how many there are afterwards.
void expect_same_results(const std::string& text, void (*shape)(Graph&, const Rewrites&), std::size_t nodes);

// Attributes of a RESCALE.
inline const std::string rescaling =
    R"({scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false})";

// Elements of a constant that differ from place to place.
std::string codes(int count);

}  // namespace tosaic
