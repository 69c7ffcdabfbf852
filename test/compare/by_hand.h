// SPDX-License-Identifier: Apache-2.0
// Programs that are small enough to be computed by hand.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "partition/graph_text.h"

namespace tosaic {

inline constexpr double in_db = 1e-3;

inline double db_of(double signal, double noise) { return 10 * std::log10(signal / noise); }

inline FloatProgram program_of(const std::string& text) {
  FloatProgram program{graph_of(text), {}, {}};
  program.held.assign(program.graph.values.size(), 0);
  program.group.assign(program.graph.values.size(), no_value);
  return program;
}

inline Tensor floats(std::vector<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return {{DType::f32, Shape{size}, {}}, Bytes::of(std::move(values))};
}

inline const ComparedLayer& layer(const Comparison& found, const std::string& value) {
  for (const ComparedLayer& one : found.layers)
    if (one.value == value) return one;
  ADD_FAILURE() << "no layer " << value;
  static const ComparedLayer none;
  return none;
}

}  // namespace tosaic
