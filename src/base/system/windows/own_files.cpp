// SPDX-License-Identifier: Apache-2.0
#include "base/system/own_files.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>

#include "base/system/environment.h"
#include "base/system/temporaries.h"
#include "base/system/windows/win32.h"

namespace tosaic {
namespace {

bool read_whole(HANDLE file, std::byte* to, std::size_t size) {
  constexpr std::size_t most = std::size_t{1} << 30;  // of one call
  for (std::size_t done = 0; done < size;) {
    DWORD more = 0;
    if (!::ReadFile(file, to + done, static_cast<DWORD>(std::min(size - done, most)), &more, nullptr) || more == 0)
      return false;  // it became shorter, or its disk fails
    done += more;
  }
  return true;
}

}  // namespace

Bytes copy_of_file(const std::string& path, std::size_t most_bytes) {
  const Handle file = open_file(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT);
  BY_HANDLE_FILE_INFORMATION facts{};
  if (!file || ::GetFileType(file.get()) != FILE_TYPE_DISK || !::GetFileInformationByHandle(file.get(), &facts) ||
      (facts.dwFileAttributes & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY)))
    return {};
  const std::uint64_t size = static_cast<std::uint64_t>(facts.nFileSizeHigh) << 32 | facts.nFileSizeLow;
  if (size > most_bytes) return {};
  std::byte* to = nullptr;
  Bytes content = Bytes::fresh(static_cast<std::size_t>(size), to);
  return read_whole(file.get(), to, static_cast<std::size_t>(size)) ? content : Bytes();
}

bool replace_file(const std::string& path, const Bytes& data) {
  static std::atomic<int> number{0};
  const auto folder = path.substr(0, path.find_last_of("/\\") + 1);
  const Temporary waiting = Temporary::file(fmt::format("{}.tosaic-{}-own{}.tmp", folder, process_number(), ++number));
  Handle file = open_file(waiting.path(), GENERIC_WRITE, CREATE_NEW);
  if (!file) return false;
  const bool done =
      reserve_room(file.get(), data.size()) == 0 && write_at(file.get(), 0, data.data(), data.size()) == 0;
  file.reset();
  return done && ::MoveFileExW(std::filesystem::path(waiting.path()).c_str(), std::filesystem::path(path).c_str(),
                               MOVEFILE_REPLACE_EXISTING);
}

}  // namespace tosaic
