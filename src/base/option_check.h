// SPDX-License-Identifier: Apache-2.0
// Options held against their descriptions.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "tosaic/options.hpp"

namespace tosaic {

// A description by its name or alias; nullptr: there is none.
const OptionInfo* find_option(std::span<const OptionInfo> known, std::string_view name);

// Is `value` one that the option takes? Error: option.value, which says in words what would have been right.
Status check_option(const OptionInfo& option, const std::string& value);

// `given` with every name known and every value good, aliases under their names and defaults filled in. Errors:
// option.unknown (with the nearest names), option.value.
Result<Options> checked_options(const Options& given, std::span<const OptionInfo> known);

}  // namespace tosaic
