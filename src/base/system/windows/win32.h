// SPDX-License-Identifier: Apache-2.0
// Windows' own header, without the names that it would take from everybody; handles that are closed.
#pragma once
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace tosaic {

struct CloseHandleOf {
  using pointer = HANDLE;
  void operator()(HANDLE handle) const { ::CloseHandle(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<HANDLE>, CloseHandleOf>;

// Null where the call that gave it failed.
inline Handle owned(HANDLE handle) { return Handle(handle == INVALID_HANDLE_VALUE ? nullptr : handle); }
// A file, shared with everybody. The bytes of a path are the program's code page's, as those of std::filesystem are:
// UTF-8 where the program's manifest says so (tools/tosaic.manifest).
inline Handle open_file(const std::string& path, DWORD access, DWORD how, DWORD flags = FILE_ATTRIBUTE_NORMAL) {
  return owned(::CreateFileW(std::filesystem::path(path).c_str(), access,
                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, how, flags, nullptr));
}
inline int last_error() { return static_cast<int>(::GetLastError()); }
// All of it at a place of the file, or the error number.
int write_at(HANDLE file, std::uint64_t at, const void* data, std::size_t size);
// Makes sure that the file has room for so many bytes. 0, or the error number.
int reserve_room(HANDLE file, std::uint64_t bytes);

}  // namespace tosaic
