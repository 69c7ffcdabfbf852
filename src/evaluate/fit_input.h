// SPDX-License-Identifier: Apache-2.0
// A sample as a program takes it.
#pragma once
#include "base/result.h"
#include "tosaic/tensor.hpp"

namespace tosaic {

// Real numbers are rounded to the input's floats, or quantised where it takes integers with a scale; integers change
// their width. What is of the input's dtype already is as it is. Error: evaluate.data.
Result<OwnedTensor> fit_input(const OwnedTensor& given, const TensorInfo& input);

}  // namespace tosaic
