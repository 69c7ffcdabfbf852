// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.h"

#include <unistd.h>
#include <cstdlib>

namespace tosaic {

void set_environment_variable(const char* name, const std::optional<std::string>& value) {
  if (value)
    ::setenv(name, value->c_str(), 1);
  else
    ::unsetenv(name);
}

int process_number() { return ::getpid(); }

}  // namespace tosaic
