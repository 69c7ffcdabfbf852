// SPDX-License-Identifier: Apache-2.0
#include "base/system/own_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/system/posix/beyond_posix.h"
#include "base/system/temporaries.h"

namespace tosaic {
namespace {

bool write_whole(int file, const Bytes& data) {
  if (reserve_room(file, data.size()) != 0) return false;
  for (std::size_t done = 0; done < data.size();) {
    const ssize_t more = ::pwrite(file, data.data() + done, data.size() - done, static_cast<off_t>(done));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    done += static_cast<std::size_t>(more);
  }
  return true;
}

bool read_whole(int file, std::byte* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t more = ::pread(file, to + done, size - done, static_cast<off_t>(done));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;  // it became shorter, or its disk fails
    done += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

Bytes copy_of_file(const std::string& path, std::size_t most_bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return {};
  struct stat info {};
  Bytes content;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) <= most_bytes) {
    const auto size = static_cast<std::size_t>(info.st_size);
    std::byte* to = nullptr;
    content = Bytes::fresh(size, to);
    if (!read_whole(file, to, size)) content = {};
  }
  ::close(file);
  return content;
}

bool replace_file(const std::string& path, const Bytes& data) {
  static std::atomic<int> number{0};
  const auto folder = path.substr(0, path.find_last_of('/') + 1);
  const Temporary waiting = Temporary::file(fmt::format("{}.tosaic-{}-own{}.tmp", folder, ::getpid(), ++number));
  const int file = ::open(waiting.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  bool done = write_whole(file, data);
  done = ::close(file) == 0 && done;
  return done && std::rename(waiting.path().c_str(), path.c_str()) == 0;
}

}  // namespace tosaic
