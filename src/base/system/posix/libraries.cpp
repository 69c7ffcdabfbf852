// SPDX-License-Identifier: Apache-2.0
#include "base/system/libraries.h"

#include <dlfcn.h>

namespace tosaic {

bool load_library(const std::string& path) { return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr; }

}  // namespace tosaic
