// SPDX-License-Identifier: Apache-2.0
// What an inference batch norm is, gain[c] * x + offset[c] in channel c, and what calls after it leave of that form.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Elements at index i of `dim` are gain[i] * x + offset[i] of something else.
struct ChannelAffine {
  int dim = 1;
  std::vector<double> gain, offset;
  bool only_scales() const;
  bool operator==(const ChannelAffine&) const = default;
};

bool is_batch_norm(Operator op);
// Of its result; nothing: a constant of it is computed or missing.
std::optional<ChannelAffine> channel_affine(const Graph& graph, const Node& norm);

// Of a product, sum or difference of x, which has its channels along `dim`, and constants that do not differ along
// other dims: frozen batch norms, layer scales, biases of their own. Nothing: it is none, or a mask, or its gains are
// so large or small that weights times them would be. Derived from its TOSA lowering.
std::optional<ChannelAffine> written_affine(const Graph& graph, const Node& call, ValueId x, int dim,
                                            std::size_t channels);

// A call whose first operand is of that form, and whose others are constants: what its first result is of the same call
// made on x. Nothing: it is not of that form. Derived from its TOSA lowering.
std::optional<ChannelAffine> affine_after(const Graph& graph, const Node& call, const ChannelAffine& operand);

std::vector<double> reals_of(const Value& constant);

}  // namespace tosaic
