// SPDX-License-Identifier: Apache-2.0
// Dynamic libraries of the process.
#pragma once
#include <string>

namespace tosaic {

// By its path, for as long as the process lives. false: it cannot be loaded.
bool load_library(const std::string& path);
// No library that is here now leaves before the process ends. What a driver keeps until then is seen to be the
// driver's, by leak checkers say, and no thread of one returns to where nothing is any more.
void keep_loaded_libraries();

}  // namespace tosaic
