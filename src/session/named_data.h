// SPDX-License-Identifier: Apache-2.0
// What programs keep outside themselves, from .ptd files.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace tosaic {

using NamedFile = std::pair<std::string, Bytes>;  // its name in messages, and its content

// Errors: those of the files; data.twice (one key, different data).
Result<std::map<std::string, Bytes>> named_data(const std::vector<NamedFile>& files);
// The same from the files that the user names.
Result<std::map<std::string, Bytes>> read_named_data(const std::vector<std::string>& paths);

// What is there under a key; null Bytes: nothing. `data` has to stay.
std::function<Bytes(const std::string& key)> found_in(const std::map<std::string, Bytes>& data);

}  // namespace tosaic
