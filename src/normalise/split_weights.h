// SPDX-License-Identifier: Apache-2.0
// Weights that are larger than what a device holds in one tensor (the layers of a VGG, the vocabulary of a language
// model) are several: linear layers by their outputs, embeddings by their columns, and the results one behind the
// other. Each element is computed as before, from the same numbers; quantised values with scales (torchao's
// dequantize_affine) are cut alike. What fits stays, and so does what cannot be cut: a bias that is computed, rows
// longer than the limit.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "ir/graph.h"

namespace tosaic {

// Float weights of more bytes, or such as quantised values make. 0: all of them stay.
Status split_weights(Graph& graph, std::uint64_t most_bytes);

}  // namespace tosaic
