// SPDX-License-Identifier: Apache-2.0
// The two weight codings. Both give weights in stream order; weight_order.h says where each belongs.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"

namespace tosaic::ethosu {

// The standard coding (mlw, "SWD"): appends exactly `count` weights (9-bit signed) to `out`. Several coded streams may
// follow each other; what follows the last weight must be an end of stream. Errors: ethosu.weights.
Status decode_mlw(std::span<const std::byte> coded, std::size_t count, std::vector<std::int16_t>& out);

// U85's fast coding ("FWD"): a header of 256 bits, then raw bytes or indices into a small table.
Status decode_fwd(std::span<const std::byte> coded, std::size_t count, std::vector<std::int16_t>& out);

}  // namespace tosaic::ethosu
