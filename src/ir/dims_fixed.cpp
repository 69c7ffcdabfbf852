// SPDX-License-Identifier: Apache-2.0
// Dim for programs whose sizes are numbers: instead of ir/dims_symbolic.cpp, where nothing else is linked. Programs
// whose sizes vary are refused when they are loaded (runtime/load_method.cpp), so that nobody comes here with a symbol.
#include <cstdlib>

#include "ir/dim.h"

namespace tosaic {

Dim::Dim(const Symbol& symbol) : number_(symbol.range.highest.value_or(0)) {}
void Dim::unknown() const { std::abort(); }
Bounds Dim::bounds() const { return {number_, number_}; }
std::string ranged_text(const Dim& dim) { return std::to_string(dim.value()); }
std::string to_string(const Dim& dim) { return std::to_string(dim.value()); }

}  // namespace tosaic
