// SPDX-License-Identifier: Apache-2.0
// The normal form of a program for a target: what compile, explain, supports and plan begin with, so that their answers
// are about one graph.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "normalise/normalise.h"
#include "ops/definitions/tosa_op.h"
#include "quantise/quantise.h"
#include "quantise/weight_quantisation.h"

namespace tosaic {

struct FormFor {
  tosa::Spec spec;
  bool integer = false;                         // its floats become integers
  bool keeps_quantised_weights = false;         // weights may be quantised values with scales
                                                // (Target::keeps_quantised_weights, of a program that stays floats)
  WeightQuantisation weight_quantisation = {};  // what the user wants of them
  bool quantises_states = false;                // caches that the program writes by rows have 8 bits
  bool all_inside = false;                      // one delegate computes all of it
  bool fold_as_pytorch = false;                 // as in normalise.h: who quantises it folds so (PT2E)
  double most_unlike_gains = INFINITY;          // of batch norms that layers after them take (normalise.h)
  Rewrites rewrite = {};                        // how its rewrites are applied
};

// Batch norms in the weights of the layers after them: at no cost in floats. With activations of 8 bits the norm's own
// rounding costs more than what rounded weights lose, with more bits it does not.
double most_unlike_gains(bool integer, const QuantiseOptions& quantise, const WeightQuantisation& weights);

// Normalised; of the weights, those that the user wants quantised are; none is larger than the device holds.
// `narrowed`: receives the names of int32 values that were int64. Errors: those of normalise and of quantise_weights.
Result<Graph> normal_form(Graph graph, const FormFor& target, const Sink& sink = {},
                          std::vector<std::string>* narrowed = nullptr);

}  // namespace tosaic
