// SPDX-License-Identifier: Apache-2.0
#include "base/system/mapped_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/bytes.h"
#include "base/system/hosted/mappings.h"

namespace tosaic {
namespace {

void on_missing_page(int, siginfo_t* info, void*) {
  const int before = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Mapping& mapping : mappings) {
    const std::uintptr_t begin = mapping.begin, end = mapping.end;
    if (at < begin || at >= end) continue;
    const std::uintptr_t page = page_bytes(), from = at / page * page;
    void* zeros = ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    has_changed(mapping);
    errno = before;
    return;
  }
  std::signal(SIGBUS, SIG_DFL);  // not ours: the access is tried again, and ends the process
}

}  // namespace

void mind_shrinking_files() {
  struct sigaction action {};
  action.sa_sigaction = on_missing_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

void drop_pages(std::uintptr_t begin, std::size_t bytes) {
  ::madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED);
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
