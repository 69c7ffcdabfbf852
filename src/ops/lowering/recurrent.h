// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, unrolled over time, in ATen calls (Rule::inside). The inputs' projections of all steps are one
// linear; each step then adds its state's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {

struct RecurrentWeights {
  Val input, hidden;                           // gates*H,I and gates*H,H (gates*H,P with a projection)
  std::optional<Val> input_bias, hidden_bias;  // gates*H
  std::optional<Val> projection;               // P,H: what the next step and layer see of an LSTM's state
};

// One step: the projected input [B, gates*H] and the state (one or two tensors [B,H]) become the new state.
using RecurrentStep = std::vector<Val> (*)(Val projected, const std::vector<Val>& state,
                                           const RecurrentWeights& weights);

std::vector<Val> lstm_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& weights);
std::vector<Val> gru_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& weights);
std::vector<Val> tanh_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& weights);
std::vector<Val> relu_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& weights);

Val linear(Val x, Val weight, std::optional<Val> bias);

// The whole lowering of lstm.input, gru.input, rnn_*.input: `states` is 2 for lstm, 1 for the others.
Vals lower_recurrent(Builder& b, const Call& call, int states, RecurrentStep step);

}  // namespace tosaic
