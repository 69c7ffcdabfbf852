// SPDX-License-Identifier: Apache-2.0
// Text that came out of a file, for people. Diagnostics as `render` gives them need no more; names of inputs, outputs
// and operations are as the file has them.
#pragma once
#include <string>
#include <string_view>

#include "tosaic/export.hpp"

namespace tosaic {

// What a terminal, a log or a page may show: control characters and bytes that are no UTF-8 become \x1b, \xff and the
// like. Line ends and tabs stay when `lines` is set.
TOSAIC_API std::string printable(std::string_view text, bool lines = false);

}  // namespace tosaic
