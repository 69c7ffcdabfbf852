// SPDX-License-Identifier: Apache-2.0
// TOSA's operators as calls of a program, for those who write what an operator means in them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tosaic/export.hpp"
#include "tosaic/result.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct TosaOperand {
  std::string name;
  std::string type;       // a dtype, or a variable that `types` binds; "shape": a list of numbers
  bool list = false;      // takes tensors
  bool constant = false;  // must be known when the program is compiled
};

struct TosaOperator {
  std::string name;                  // "clamp": the call is "tosaic.clamp.default", or .integer
  std::string summary;               // one sentence
  std::vector<std::string> schemas;  // in PyTorch's notation: overload default (floats take part), integer (none does)
  std::vector<TosaOperand> operands, results;
  // The supported combinations of dtypes: what each binds the variables to.
  std::vector<std::vector<std::pair<std::string, DType>>> types;
};
// All whose operands and results are tensors, sorted by name. Errors: memory.exhausted.
TOSAIC_API Result<std::vector<TosaOperator>> tosa_operators();

// What a call gives: types, and elements where all operands have theirs (else bytes are null). `arguments`: by the
// schema's names; dtypes by name ("f32"). Errors: aten.*, tosa.* (the rule that does not hold), call.*.
TOSAIC_API Result<std::vector<OwnedTensor>> evaluate_call(
    const std::string& overload, const std::vector<InputTensor>& operands,
    const std::vector<std::pair<std::string, Literal>>& arguments);

}  // namespace tosaic
