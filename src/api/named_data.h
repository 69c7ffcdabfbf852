// SPDX-License-Identifier: Apache-2.0
// What programs keep outside themselves, from the .ptd files that the user names.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tosaic {

// Errors: those of the files; data.twice (one key, different data).
Result<std::map<std::string, Bytes>> read_named_data(const std::vector<std::string>& files);

}  // namespace tosaic
