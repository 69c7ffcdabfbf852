// SPDX-License-Identifier: Apache-2.0
// Text within HTML, or within one of its attributes in double quotes.
#pragma once
#include <string>
#include <string_view>

namespace tosaic {

// "a < b" is "a &lt; b".
std::string html_text(std::string_view text);

}  // namespace tosaic
