// SPDX-License-Identifier: Apache-2.0
#include "base/system/posix/beyond_posix.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace tosaic {

int reserve_room(int file, std::size_t bytes) {
  struct stat info {};
  constexpr off_t block = 512;  // in which st_blocks counts, whatever the disk's are
  if (bytes == 0 || ::fstat(file, &info) != 0) return 0;
  const off_t missing = static_cast<off_t>(bytes) - static_cast<off_t>(info.st_blocks) * block;
  if (missing <= 0) return 0;
  fstore_t room{F_ALLOCATEALL, F_PEOFPOSMODE, 0, missing, 0};
  if (::fcntl(file, F_PREALLOCATE, &room) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

// As close as macOS comes to O_PATH: it must be readable, and does not keep its disk from being ejected. Without
// waiting: it may be a pipe.
int open_name(const char* path) { return ::open(path, O_EVTONLY | O_CLOEXEC | O_NONBLOCK); }

bool make_channel(int (&ends)[2]) {
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
  for (int end : ends) {
    const int on = 1;
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::setsockopt(end, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
  }
  return true;
}

ssize_t send_quietly(int channel, const void* data, std::size_t size) { return ::send(channel, data, size, 0); }

}  // namespace tosaic
