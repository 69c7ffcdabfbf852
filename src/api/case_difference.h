// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "tosaic/bundle.hpp"

namespace tosaic {

// "output 0: 3 of 10 elements differ, ..."; empty: these are the outputs that were expected.
std::string difference(const std::vector<Output>& found, const std::vector<Output>& expected,
                       const Tolerance& tolerance);

}  // namespace tosaic
