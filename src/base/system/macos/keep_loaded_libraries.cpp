// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <mach-o/dyld.h>

#include "base/system/libraries.h"

namespace tosaic {

void keep_loaded_libraries() {
  for (std::uint32_t i = 0; i < ::_dyld_image_count(); ++i)
    if (const char* name = ::_dyld_get_image_name(i)) ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace tosaic
