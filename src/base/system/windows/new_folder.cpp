// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <atomic>

#include "base/system/environment.h"
#include "base/system/hosted/child_process.h"
#include "base/system/hosted/files.h"
#include "base/system/windows/win32.h"

namespace tosaic {

std::string new_folder(const std::string& parent, std::string& problem) {
  static std::atomic<int> number{0};
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path where = parent.empty() ? fs::temp_directory_path(failure) : fs::path(parent);
  for (;;) {  // a folder of that name may have been left by a process with our number that was killed
    const fs::path made = where / fmt::format("tosaic-{}-{}-{:x}", process_number(), ++number, ::GetTickCount64());
    if (::CreateDirectoryW(made.c_str(), nullptr)) return made.string();
    if (::GetLastError() == ERROR_ALREADY_EXISTS) continue;
    problem = fmt::format("{}: {}", made.string(), error_text(last_error()));
    return "";
  }
}

}  // namespace tosaic
