// SPDX-License-Identifier: Apache-2.0
// The forms of a function (quantise/function_forms.h), tried: each is lowered and run on quantised values of 16 bits,
// and compared with the function in double.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

struct FunctionForm;

class FormTrial {
 public:
  // `share`: of the elements, at each of the quantised values.
  FormTrial(const Graph& graph, const Node& node, const Scales& x, const TensorType& y,
            std::span<const std::int64_t> quantised, std::span<const double> share);
  bool ok() const { return !weights_.empty(); }

  // Means over the elements. Errors are squared; infinite where a form cannot be lowered.
  struct Run {
    double error = std::numeric_limits<double>::infinity();
    std::size_t operators = 0;
    bool gathers = false;  // from a table of all values, which few NPUs have room for
  };
  Run run(const FunctionForm& form) const;
  // Of the best form that there could be: what rounding of the operand and of the result costs.
  double least_error() const { return least_error_; }
  double power() const { return power_; }
  double width() const { return highest_ - lowest_; }  // of the result's quantised values

 private:
  Graph alone_;  // the node, without others
  Tensor operand_;
  std::vector<double> wanted_, weights_;
  double lowest_ = 0, highest_ = 0, least_error_ = 0, power_ = 0;
};

}  // namespace tosaic
