// SPDX-License-Identifier: Apache-2.0
#include "base/system/streams.h"

#include <fcntl.h>
#include <io.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/system/temporaries.h"
#include "base/system/windows/win32.h"

namespace tosaic {
namespace {

bool stdout_closed = false;

bool is_console(HANDLE handle) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle, &mode) != 0;
}

// As the C library would number it.
int errno_of(DWORD why) {
  switch (why) {
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
    case ERROR_DISK_QUOTA_EXCEEDED:
    case ERROR_FILE_TOO_LARGE: return ENOSPC;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
    case ERROR_PIPE_NOT_CONNECTED: return EPIPE;
    case ERROR_INVALID_HANDLE: return EBADF;
    default: return EIO;
  }
}

// A console shows wide characters whatever its code page is; anything else gets the bytes.
int write_console(HANDLE handle, std::string_view text) {
  constexpr std::size_t most = 8192;  // of one call
  std::wstring wide(text.size(), L'\0');
  wide.resize(
      static_cast<std::size_t>(std::max(0, ::MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()),
                                                                 wide.data(), static_cast<int>(wide.size())))));
  for (std::size_t done = 0; done < wide.size();) {
    DWORD more = 0;
    if (!::WriteConsoleW(handle, wide.data() + done, static_cast<DWORD>(std::min(wide.size() - done, most)), &more,
                         nullptr))
      return errno_of(::GetLastError());
    done += more;
  }
  return 0;
}

int write_all(HANDLE handle, std::string_view text) {
  constexpr std::size_t most = std::size_t{1} << 20;  // of one call
  const bool console = is_console(handle);
  while (!text.empty()) {
    std::size_t now = std::min(text.size(), most);
    while (console && now > 1 && now < text.size() && (text[now] & 0xC0) == 0x80) --now;  // whole characters
    if (console) {
      if (const int why = write_console(handle, text.substr(0, now)); why != 0) return why;
    } else {
      DWORD done = 0;
      if (!::WriteFile(handle, text.data(), static_cast<DWORD>(now), &done, nullptr)) return errno_of(::GetLastError());
      now = done;
    }
    text.remove_prefix(now);
  }
  return 0;
}

HANDLE stream(DWORD which) { return ::GetStdHandle(which); }

BOOL WINAPI when_told_to_end(DWORD) {
  leave_nothing_behind();
  return FALSE;  // the system ends the process next
}

}  // namespace

void guard_streams() {
  for (int file : {0, 1, 2}) {
    // -2: a program without a console has none.
    if (const auto handle = ::_get_osfhandle(file); handle != -1 && handle != -2) continue;
    if (file == 1) stdout_closed = true;
    const int nothing = ::_open("NUL", _O_RDWR);
    if (nothing >= 0 && nothing != file) {
      ::_dup2(nothing, file);
      ::_close(nothing);
    }
  }
}

bool stderr_is_terminal() { return is_console(stream(STD_ERROR_HANDLE)); }

void say(std::string_view text) { (void)write_all(stream(STD_ERROR_HANDLE), text); }

int print_all(std::string_view text) {
  if (text.empty()) return 0;
  const int why = stdout_closed ? EBADF : write_all(stream(STD_OUTPUT_HANDLE), text);
  if (why == EPIPE) {
    leave_nothing_behind();
    std::_Exit(1);
  }
  return why;
}

// Control-C, Control-Break, and the end of the window or of the session.
void tidy_up_when_told_to_end() { ::SetConsoleCtrlHandler(when_told_to_end, TRUE); }

}  // namespace tosaic
