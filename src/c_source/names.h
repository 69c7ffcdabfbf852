// SPDX-License-Identifier: Apache-2.0
// Names that C takes.
#pragma once
#include <string>

namespace tosaic::c_source {

// The text with '_' for what no name may have; `first` goes in front of what is empty or begins with a digit.
std::string name_in_c(std::string text, const char* first = "_");
// In capitals, as macros are.
std::string macro_name(std::string name);

}  // namespace tosaic::c_source
