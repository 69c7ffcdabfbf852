// SPDX-License-Identifier: Apache-2.0
// A program, quantised or in narrower floats, held against the floats that it was made of, layer by layer: the whole of
// it as it is executed, and each call alone.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compare/narrow_floats.h"
#include "ops/definitions/tosa_op.h"
#include "quantise/float_program.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

struct CompareHow {
  const tosa::Spec* spec = nullptr;      // of the target
  std::vector<char> outside = {};        // per node of the quantised program: the host runs it
  const NarrowFloats* narrow = nullptr;  // of a program of floats
  bool other_samples = false;            // than those of the calibration
  bool outputs_only = false;             // no layers
  std::span<const std::int64_t> labels = {};
  // What the device that the program is for gives; null: it is not asked.
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& sample)> device = {};
  int threads = 0;
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // samples
  std::function<bool()> cancelled = {};                                    // asked before each: compile.cancelled
};

// Each sample has one tensor per input of the float program. Names, target and scheme are left to the caller. Errors:
// compare.nothing-quantised, compare.states, compare.labels, run.*.
Result<Comparison> compare_programs(const FloatProgram& floats, const Graph& quantised,
                                    const std::vector<std::vector<Tensor>>& samples, const CompareHow& how);

}  // namespace tosaic
