// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#define XXH_INLINE_ALL
#include <xxhash.h>

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
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    int why = errno;
    return error(why == ENOENT ? "file.missing" : "file.unreadable",
                 fmt::format("cannot open {}: {}", path, std::strerror(why)))
        .at({path, 0, ""});
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return error("file.unreadable", path + " is not a regular file").at({path, 0, ""});
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
  if (data == MAP_FAILED)
    return error("file.unreadable", fmt::format("cannot map {}: {}", path, std::strerror(why))).at({path, 0, ""});
  std::shared_ptr<const void> owner(data, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return Bytes(std::move(owner), data, size);
}

Status write_file(const std::string& path, const void* data, std::size_t size) {
  std::string temporary = fmt::format("{}.tmp{}", path, ::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool good = file != nullptr;
  int why = errno;
  if (file) {
    good = std::fwrite(data, 1, size, file) == size;
    if (!good) why = errno;
    if (std::fclose(file) != 0 && good) {
      good = false;
      why = errno;
    }
    if (good && std::rename(temporary.c_str(), path.c_str()) != 0) {
      good = false;
      why = errno;
    }
    if (!good) std::remove(temporary.c_str());
  }
  if (good) return {};
  return error("file.unwritable", fmt::format("cannot write {}: {}", path, std::strerror(why)))
      .at({path, 0, ""})
      .hint("check that the folder exists and may be written");
}

}  // namespace tosaic
