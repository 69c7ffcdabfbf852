// SPDX-License-Identifier: Apache-2.0
// Stage 2, normalise: ATen -> ATen. Afterwards the graph is pure (no in-place calls, no assertions, no identities),
// what is constant is a constant, int64 is narrowed to int32 where that is safe, PT2E's quantise/dequantise
// nodes have become scales on types, and batch norms are folded into the convolutions before them. Control flow is
// written out where that is as well; bodies that stay are normalised by themselves, and say why (attr "kept"). Error
// model.dynamic-shape: the sizes of the inputs are no numbers; specialise the graph first (ir/specialise.h).
#pragma once
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/rewrite_trace.h"

namespace tosaic {

// The whole stage: normalise.cpp is the page of its rewrites, in their order.
struct NormaliseOptions {
  bool inline_bodies = true;      // false: control flow passes untouched
  bool narrow_loops = false;      // a target takes loops and branches as they are, in 32 bits
  bool all_inside = false;        // one delegate computes all of it
  bool is_body = false;           // of a branch or a loop
  bool fold_quantisation = true;  // false: PT2E's conversions stay as nodes (targets without integer profile)
  bool keep_quantised_weights =
      false;  // weights that are quantised with scales stay so, and scales that are chosen at run time
  std::vector<std::string>* narrowed = nullptr;  // receives the names of int32 values that were int64
  bool fold_as_pytorch = false;                  // batch norms behind convolutions, and nothing else
  double most_unlike_gains = INFINITY;           // as in fold_batch_norm_ahead
  Rewrites rewrite = {};                         // how its rewrites are applied
};
Result<Graph> normalise(Graph graph, const NormaliseOptions& options, const Sink& sink);

// Control flow that is neither written out nor a branch or loop that stays one: said by name, at the user's line.
// Errors: model.control-flow.
Status runs_as_it_stands(const Graph& graph);
// Of a program as it was read: does every operator in it return what it makes? One that is unknown and has no results,
// or writes into tensors that it is given, is taken to change all of its operands. Errors: model.effect.
Status acts_on_operands(const Graph& graph);

// Its steps, each small and by itself:
Status functionalise(Graph& graph);
// Calls on x[mask] that treat each row by itself are made on all of them, and the mask chooses what is put back or
// summed. Where rows of a mask are used otherwise, all that they are used for stays as it is.
void compute_masked_wholes(Graph& graph);
// cond, map, scan, and while loops that count, as calls of their bodies; loops that data end, and branches that are
// better not taken in vain, stay. False: there is no control flow. Error model.control-flow: too many turns, or results
// of unlike types.
Result<bool> inline_bodies(Graph& graph);
// What bodies compute has names that nothing else in the program has.
void name_bodies_apart(Graph& graph, bool is_body);
void signed_products(Graph& graph);
// `keep_quantised_weights`: scales that are chosen at run time stay, where zero points have no 64 bits.
void drop_dynamic_scales(Graph& graph, const Sink& sink, bool keep_quantised_weights = false);
void drop_identities(Graph& graph);
struct NarrowOptions {
  bool single_stay = false;  // numbers by themselves, which count a loop's turns: exact, and no work for a delegate
  bool bodies = false;       // what loops carry and branches give, too
  bool all_inside = false;   // nothing can be computed outside: what may not fit is narrowed, and a warning says so
};
Status narrow_integers(Graph& graph, const Sink& sink, std::vector<std::string>* names = nullptr,
                       const NarrowOptions& options = {});
void fold_constants(Graph& graph, bool keep_quantised_weights = false);
void recognise_linear(Graph& graph);
void fold_batch_norm(Graph& graph, bool written = true);
// Into the layers after it; not where the largest gain of a channel is so many times the smallest: weights that are
// rounded would lose the smaller ones.
void fold_batch_norm_ahead(Graph& graph, double most_unlike_gains = INFINITY);
Status fold_quantisation(Graph& graph);
// Rows of a result that all of its readers slice away are not computed. False: nothing changed.
bool drop_unread_rows(Graph& graph);
// Writes by index that name no index twice, and those of states, have the attribute "distinct".
void mark_distinct_indices(Graph& graph);
// Quotients, roots and logarithms whose last bit decides something have the attribute "exact".
void mark_seen_rounding(Graph& graph, bool is_body);

}  // namespace tosaic
