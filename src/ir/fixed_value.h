// SPDX-License-Identifier: Apache-2.0
// What a program takes or returns in addition to tensors: scalars, flags, texts and None, fixed when it was exported.
// They are no values of the graph; whoever writes or runs the program puts them back at their places.
#pragma once
#include <string>
#include <vector>

#include "ir/attribute.h"

namespace tosaic {

struct FixedValue {
  std::size_t position = 0;  // among all inputs, or all outputs, tensors counted
  Attr value;                // monostate: None
};
using FixedValues = std::vector<FixedValue>;  // by position, ascending

}  // namespace tosaic
