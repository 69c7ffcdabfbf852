// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.h"

#include <cstdlib>

#include "base/system/windows/win32.h"

namespace tosaic {

void set_environment_variable(const char* name, const std::optional<std::string>& value) {
  ::_putenv_s(name, value ? value->c_str() : "");  // an empty one is taken out
}

int process_number() { return static_cast<int>(::GetCurrentProcessId()); }

std::string program_file() {
  std::wstring path(32768, L'\0');  // the longest
  path.resize(::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return std::filesystem::path(path).string();
}

}  // namespace tosaic
