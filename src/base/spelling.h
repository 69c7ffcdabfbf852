// SPDX-License-Identifier: Apache-2.0
// Which of the known words somebody meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tosaic {

// Those with the fewest insertions, deletions and replacements, and those that `word` begins; none when all are far.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known);
// "a", "a or b", "a, b or c"
std::string alternatives(const std::vector<std::string>& words);

}  // namespace tosaic
