// SPDX-License-Identifier: Apache-2.0
// Stage 6, tidy: TOSA -> TOSA, the same results bit for bit (floats too), fewer nodes. Each rewrite is one
// file and one walk; they repeat until none changes anything, and none may make the graph larger.
#pragma once
#include "ir/graph.h"
#include "ir/rewrite_trace.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

struct TidyOptions {
  bool keep_quantised_weights = false;  // weights that are computed of quantised values are left to the run
  bool keep_activations = false;  // a CLAMP right behind a RESCALE stays, though the saturation did its work already
  Rewrites rewrite = {};          // how its rewrites are applied
};
void tidy(Graph& graph, const TidyOptions& options = {});

// The rewrites. Each returns whether it changed something.
bool drop_identity(Graph& graph);    // tosa.identity; no-op slices, tiles, pads, concats of one
bool sink_transposes(Graph& graph);  // towards the outputs, where most cancel; constants are transposed now
bool merge_reshapes(Graph& graph);   // reshape of reshape; transposes that only move dims of size 1
bool merge_rescales(Graph& graph);   // an exact widening before a rescale
bool merge_slices(Graph& graph);     // slice of slice
bool fold_pads(Graph& graph);        // a pad before a convolution, which has padding of its own
// clamp of clamp; a clamp that saturation already did
bool merge_clamps(Graph& graph, bool keep_activations = false);
bool share_equal(Graph& graph);  // equal constants, then equal nodes on equal operands
// Nodes whose operands are all constants.
bool fold_constant_nodes(Graph& graph, bool keep_quantised_weights = false);

// Not one of the rounds, for it asks what the target takes: weights whose quantised values fit 4 bits have 4 where it
// can.
void narrow_weights(Graph& graph, const tosa::Spec& spec);
// Quantised values that become floats and fit 4 bits are kept two to a byte, and taken apart in floats.
void pack_int4(Graph& graph);

}  // namespace tosaic
