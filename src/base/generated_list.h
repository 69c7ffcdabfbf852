// SPDX-License-Identifier: Apache-2.0
// An entry of the lists that cmake/generated_list.cmake makes from file names: operators, targets.
#pragma once
#include <iterator>
#include <span>
#include <string_view>

namespace tosaic {
template <class Op>
struct ListEntry {
  std::string_view file;  // file name without ending
  Op (*make)();
};
}  // namespace tosaic
