// SPDX-License-Identifier: Apache-2.0
#include "base/system/libraries.h"

#include <vector>

#include "base/system/windows/win32.h"

#include <psapi.h>

namespace tosaic {

bool load_library(const std::string& path) { return ::LoadLibraryW(std::filesystem::path(path).c_str()) != nullptr; }

void keep_loaded_libraries() {
  std::vector<HMODULE> modules(256);
  DWORD bytes = 0;
  const auto ask = [&] {
    const auto room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
    return ::EnumProcessModules(::GetCurrentProcess(), modules.data(), room, &bytes) != 0;
  };
  if (!ask()) return;
  if (const std::size_t count = bytes / sizeof(HMODULE); count > modules.size()) {
    modules.resize(count);
    if (!ask()) return;
  }
  modules.resize(std::min<std::size_t>(modules.size(), bytes / sizeof(HMODULE)));
  for (HMODULE module : modules) {
    HMODULE pinned = nullptr;
    ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                         reinterpret_cast<LPCWSTR>(module), &pinned);
  }
}

}  // namespace tosaic
