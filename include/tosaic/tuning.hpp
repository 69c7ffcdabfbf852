// SPDX-License-Identifier: Apache-2.0
// Which tensors of an int8 program get 16 bits when not all can afford them: what `tune` (compile.hpp) gives.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tosaic/export.hpp"
#include "tosaic/result.hpp"

namespace tosaic {

// What is asked for: so much accuracy as cheaply as possible, or the best accuracy at a cost.
struct Budget {
  std::optional<double> least_db;    // signal to noise of the worst output, at least
  std::optional<double> least_top1;  // percent of the labels, at least
  bool below_floats = false;         // least_top1 is so many points below what floats have
  std::optional<double> most_ratio;  // cost, at most so many times that in int8
  std::string unit;                  // of the cost: "cycles", "bytes"; empty: the target's
  std::string text;                  // as it was written
};
// "snr>=30", "top1>=97.5", "top1>=float-0.5", "cycles<=1.15x", "bytes<=1.2x"; "=" is taken for either. Error:
// tune.budget.
TOSAIC_API Result<Budget> read_budget(std::string_view text);

// A tensor of the int8 program that may have 16 bits, and what that takes: calls that read it in 16 bits, too.
struct TunedTensor {
  std::string op;                  // of the call that makes it: "aten.conv2d.default"; or "input x"
  std::string where;               // of that call: "features.3.conv, model.py:6"
  std::vector<std::string> nodes;  // of the exported graph: what a plan names, but for those of tensors before it
  double noise = 0;                // its share of all that 8 bits add to the error of the results
  double cost = 0;                 // its share of the cost in int8
};

// Some tensors in 16 bits: compiled, run on the samples, and measured.
struct TunedPoint {
  std::vector<std::size_t> tensors;  // indices of the order
  std::size_t calls = 0;             // nodes that the plan names
  double db = 0;                     // signal to noise of the worst output; infinity: equal
  std::optional<double> top1;        // percent of the labels that are right, where labels are given
  double cost = 0;                   // in the unit
  double ratio = 1;                  // to int8's
};

struct Tuning {
  std::string model, target;
  std::string program;  // its fingerprint, as the plan says it
  std::string unit;     // "cycles": Vela's estimate; "bytes": of activations that calls read and write
  std::size_t samples = 0;
  std::optional<double> top1_of_floats;
  std::vector<TunedTensor> order;  // most noise for its cost first
  std::vector<TunedPoint> points;  // int8, then by cost
  std::size_t chosen = 0;          // of the points
  bool met = true;                 // false: no point meets the budget, and the chosen one comes nearest
  std::string plan;                // of the chosen point, for the option `plan`
};

// The points as a table, the chosen one marked, and the calls that it widens.
TOSAIC_API std::string tuning_text(const Tuning& tuning);
// An object with all of it.
TOSAIC_API std::string tuning_json(const Tuning& tuning);

}  // namespace tosaic
