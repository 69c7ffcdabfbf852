// SPDX-License-Identifier: Apache-2.0
// Names come out of files that anybody may have written: what a terminal would obey is shown instead.
#pragma once
#include <string>
#include <string_view>

namespace tosaic {

// Control characters as \x1b, \x9b and the like; line ends and tabs stay when `lines` is set.
std::string printable(std::string_view text, bool lines = false);

}  // namespace tosaic
