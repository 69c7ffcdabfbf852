// SPDX-License-Identifier: Apache-2.0
#include "base/system/posix/beyond_posix.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <cerrno>

namespace tosaic {

int reserve_room(int file, std::size_t bytes) {
  if (bytes == 0 || ::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

int open_name(const char* path) { return ::open(path, O_PATH | O_CLOEXEC); }

bool make_channel(int (&ends)[2]) { return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0; }

ssize_t send_quietly(int channel, const void* data, std::size_t size) {
  return ::send(channel, data, size, MSG_NOSIGNAL);
}

}  // namespace tosaic
