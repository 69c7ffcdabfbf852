// SPDX-License-Identifier: Apache-2.0
// A board has no environment.
#include "base/system/environment.h"

namespace tosaic {

std::string environment_variable(const char*) { return {}; }
std::optional<std::string> find_environment_variable(const char*) { return std::nullopt; }
int process_number() { return 1; }

}  // namespace tosaic
