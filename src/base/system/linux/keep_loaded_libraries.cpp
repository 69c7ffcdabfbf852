// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>
#include <vector>

#include "base/system/libraries.h"

namespace tosaic {

void keep_loaded_libraries() {
  std::vector<std::string> names;
  const auto note = [](dl_phdr_info* info, std::size_t, void* list) {
    if (*info->dlpi_name) static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(note, &names);
  for (const std::string& name : names) ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace tosaic
