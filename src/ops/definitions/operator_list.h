// SPDX-License-Identifier: Apache-2.0
// The shape of the operator tables that cmake/operators.cmake generates from file names.
#pragma once
#include <iterator>
#include <span>
#include <string_view>

namespace tosaic {
template <class Op>
struct OperatorEntry {
  std::string_view file;  // file name without ending
  Op (*make)();
};
}  // namespace tosaic
