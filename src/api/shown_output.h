// SPDX-License-Identifier: Apache-2.0
// One output as people and files get it.
#pragma once
#include <optional>
#include <string>

#include "ir/tensor.h"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct ShownOutput {
  std::string type, value;  // as RunOutcome has them
  std::optional<Tensor>
      tensor;  // what a .npy file can hold of it, numbers as arrays of rank 0; None and texts: nothing
};
ShownOutput shown(const Output& output);

}  // namespace tosaic
