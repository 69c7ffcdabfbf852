// SPDX-License-Identifier: Apache-2.0
// What calibration found out about a program, before its types say so. Private to quantise/.
#pragma once
#include <map>
#include <vector>

#include "ir/states.h"
#include "quantise/bias_correction.h"
#include "quantise/compared_scalars.h"
#include "quantise/function_in_parts.h"
#include "quantise/plan.h"
#include "quantise/quantise.h"
#include "quantise/quantised_bodies.h"
#include "quantise/rounded_weights.h"
#include "quantise/row_norms.h"
#include "quantise/steps.h"
#include "quantise/unlike_ranges.h"

namespace tosaic {

// Norms that were written anew, for the program at other sizes: their rows are scaled, or they are held in parts.
struct RowScaling {
  std::vector<RowNorm> norms;
  std::vector<Ends> ends;  // of the parts; none: rows are scaled
  std::vector<double> largest;
  std::vector<char> wide;
  std::vector<Ends> of_scaled;
  bool only_parts() const { return !ends.empty(); }
};

struct NormRounds {
  std::vector<RowScaling> rounds;
};

// A program whose composites are expanded, as it is quantised: what becomes integers, of which width and range.
struct Calibrated {
  Graph graph;
  QuantisationPlan plan;
  std::vector<Range> ranges;
  std::map<ValueId, Range> narrow;  // of 8-bit copies of wider tensors
  CertainRanges certain;
  ComparedScalars compared;
  ValueId first_scaled;  // from here on, values belong to norms of scaled rows
  UnlikeRanges unlike_ranges;
  LayerMeans means;  // until `shifts` are known
  LayerRows rows;    // until `rounded` is known
  RoundedWeights rounded = {};
  BiasShifts shifts = {};
  std::vector<RowScaling> rounds = {};        // what was done about them, in order
  std::map<std::string, Shape> varying = {};  // as the options had it
  std::map<ValueId, double> largest = {};     // magnitudes of constants that grow with the sizes, at any of them
  std::vector<char> cut = {};                 // per value: what saturates in it means nothing to its readers
};

struct Calibration::Impl {
  Calibrated found;
  std::vector<char> exact;  // per value: its group's range needs no room for values larger than the samples'
  StatesAsTensors states;
  QuantisedBodies bodies;
  Sink sink;
  Rewrites rewrite = {};
};

}  // namespace tosaic
