// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mapped_files.h"

namespace tosaic {

Bytes Bytes::copy(const void* data, std::size_t size) {
  std::byte* memory = nullptr;
  Bytes bytes = fresh(size, memory);
  if (size) std::memcpy(memory, data, size);
  return bytes;
}

std::uint64_t hash_of(const void* data, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

Result<Bytes> map_file(const std::string& path) {
  const auto unreadable = [&](const std::string& why) {
    return error("file.unreadable", fmt::format("cannot read {}: {}", path, why)).at({path, 0, ""});
  };
  // The system would open what is named before it.
  if (path.find('\0') != path.npos) return unreadable("there is a zero byte in its name");
  // Without waiting: a pipe that nobody writes to would never open.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    int why = errno;
    if (why == ENOENT)
      return error("file.missing", fmt::format("cannot open {}: {}", path, std::strerror(why))).at({path, 0, ""});
    return unreadable(std::strerror(why));
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    if (S_ISDIR(info.st_mode)) return unreadable("it is a folder").hint("name a file in it");
    return unreadable(S_ISFIFO(info.st_mode)   ? "it is a pipe, not a file"
                      : S_ISSOCK(info.st_mode) ? "it is a socket, not a file"
                                               : "it is a device, not a file")
        .hint("save what comes from there as a file first");
  }
  auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    static const std::byte nothing{};
    return Bytes(nullptr, &nothing, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int why = errno;
  ::close(fd);
  if (data == MAP_FAILED) return unreadable(std::strerror(why));
  remember_mapping(data, size, path);
  std::shared_ptr<const void> owner(data, [size](const void* p) {
    forget_mapping(p);
    ::munmap(const_cast<void*>(p), size);
  });
  return Bytes(std::move(owner), data, size);
}

}  // namespace tosaic
