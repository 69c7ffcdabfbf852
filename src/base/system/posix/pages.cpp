// SPDX-License-Identifier: Apache-2.0
#include "base/system/pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>

namespace tosaic {

std::uint64_t machine_memory() {
  std::uint64_t bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // Control groups, versions 2 and 1: a container often has less than the machine.
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::uint64_t most = 0; std::ifstream(file) >> most && most > 0) bytes = std::min(bytes, most);
  return bytes;
}

std::byte* take_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void give_pages_back(std::byte* pages, std::size_t bytes) { ::munmap(pages, bytes); }

bool empty_pages(std::byte* pages, std::size_t bytes) { return ::madvise(pages, bytes, MADV_DONTNEED) == 0; }

bool has_addresses(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && ::munmap(at, bytes) == 0;
}

void limit_heap([[maybe_unused]] std::uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit most{bytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &most);
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 16 << 20);
#endif
}

}  // namespace tosaic
