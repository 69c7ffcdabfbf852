// SPDX-License-Identifier: Apache-2.0
#include <mach-o/dyld.h>
#include <cstdlib>
#include <memory>

#include "base/system/environment.h"

namespace tosaic {

std::string program_file() {
  std::uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);  // which is too small, and says what is not
  std::string path(size, '\0');
  if (::_NSGetExecutablePath(path.data(), &size) != 0) return "";
  const std::unique_ptr<char, void (*)(void*)> whole(::realpath(path.c_str(), nullptr), std::free);
  return whole ? whole.get() : "";
}

}  // namespace tosaic
