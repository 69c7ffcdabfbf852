// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/system/windows/win32.h"

namespace tosaic {

int write_at(HANDLE file, std::uint64_t at, const void* data, std::size_t size) {
  constexpr std::size_t most = std::size_t{1} << 30;  // of one call
  const auto* from = static_cast<const char*>(data);
  for (std::size_t done = 0; done < size;) {
    OVERLAPPED place{};
    place.Offset = static_cast<DWORD>(at + done);
    place.OffsetHigh = static_cast<DWORD>((at + done) >> 32);
    DWORD more = 0;
    if (!::WriteFile(file, from + done, static_cast<DWORD>(std::min(size - done, most)), &more, &place))
      return last_error();
    if (more == 0) return ERROR_DISK_FULL;
    done += more;
  }
  return 0;
}

int reserve_room(HANDLE file, std::uint64_t bytes) {
  FILE_STANDARD_INFO now{};
  if (!::GetFileInformationByHandleEx(file, FileStandardInfo, &now, sizeof(now))) return 0;
  if (static_cast<std::uint64_t>(now.AllocationSize.QuadPart) >= bytes) return 0;  // less would shorten it
  FILE_ALLOCATION_INFO room{};
  room.AllocationSize.QuadPart = static_cast<LONGLONG>(bytes);
  if (::SetFileInformationByHandle(file, FileAllocationInfo, &room, sizeof(room))) return 0;
  const int why = last_error();
  return why == ERROR_DISK_FULL || why == ERROR_DISK_QUOTA_EXCEEDED || why == ERROR_FILE_TOO_LARGE ? why : 0;
}

}  // namespace tosaic
