// SPDX-License-Identifier: Apache-2.0
// Why a layer loses accuracy, from what was measured, and the option that helps.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compare/difference.h"
#include "compare/layers.h"
#include "compare/narrow_floats.h"

namespace tosaic {

// What is known of one layer.
struct LossEvidence {
  const Graph* quantised = nullptr;
  const NarrowFloats* narrow = nullptr;  // of a program of floats
  const Layer* layer = nullptr;
  const Difference* accumulated = nullptr;
  std::optional<double> own_db, weights_db;
  std::optional<ChannelError> worst_channel;  // of the own error
  std::string node;                           // of the exported graph, which overrides name
  std::string largest_of_group;  // the tensor that reaches furthest of those that share its scale; empty: itself
  bool takes_int16 = true;       // the target has 16-bit activations
  bool other_samples = false;    // than those of the calibration
};
std::vector<LossReason> loss_reasons(const LossEvidence& found);
// Of floats in fewer bits.
std::vector<LossReason> loss_reasons_of_floats(const LossEvidence& found);

// Nearer than that, one part of the noise is nearly all of it.
inline constexpr double as_much_db = 1;

}  // namespace tosaic
