// SPDX-License-Identifier: Apache-2.0
// Stage 2, normalise: ATen -> ATen. Afterwards the graph is pure (no in-place calls, no assertions, no identities),
// what is constant is a constant, int64 is narrowed to int32 where that is safe, PT2E's quantise/dequantise
// nodes have become scales on types, and batch norms are folded into the convolutions before them. Control flow is
// written out where that can be; other bodies and the states of a graph pass untouched. Error model.dynamic-shape: the
// sizes of the inputs are no numbers; specialise the graph first (ir/specialise.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

using Sink = std::function<void(Diagnostic)>;

// The whole stage, in this order: functionalise, take_numbers_as_tensors, drop_identities, fold_constants,
// inline_bodies, narrow_integers, drop_dynamic_scales, recognise_linear, fold_batch_norm, fold_quantisation.
struct NormaliseOptions {
  bool inline_bodies = true;      // false: control flow passes untouched
  bool fold_quantisation = true;  // false: PT2E's conversions stay as nodes (targets without integer profile)
  std::vector<std::string>* narrowed = nullptr;  // receives the names of int32 values that were int64
};
Result<Graph> normalise(Graph graph, const NormaliseOptions& options, const Sink& sink);

// Control flow and states pass through all stages up to tidy, but nobody emits, packs or runs them yet: said by name,
// at the user's line. Errors: model.control-flow.
Status runs_as_it_stands(const Graph& graph);

// Its steps, each small and by itself:
Status functionalise(Graph& graph);
// cond, map, scan, and while loops that count, as calls of their bodies; loops that data end stay. Error
// model.control-flow: too many turns, or results of unlike types.
Status inline_bodies(Graph& graph);
void drop_dynamic_scales(Graph& graph, const Sink& sink);
void drop_identities(Graph& graph);
Status narrow_integers(Graph& graph, const Sink& sink, std::vector<std::string>* names = nullptr);
void fold_constants(Graph& graph);
void recognise_linear(Graph& graph);
void fold_batch_norm(Graph& graph);
Status fold_quantisation(Graph& graph);

}  // namespace tosaic
