// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/system/pages.h"

namespace tosaic {

std::uint64_t machine_memory() {
  std::uint64_t bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // Control groups, versions 2 and 1: a container often has less than the machine.
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::uint64_t most = 0; std::ifstream(file) >> most && most > 0) bytes = std::min(bytes, most);
  return bytes;
}

bool empty_pages(std::byte* pages, std::size_t bytes) { return ::madvise(pages, bytes, MADV_DONTNEED) == 0; }

void in_large_pages(std::byte* pages, std::size_t bytes) { ::madvise(pages, bytes, MADV_HUGEPAGE); }

namespace {
constexpr int usual_growth = 16 << 20;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, usual_growth);
#endif
}

void heap_in_large_pages([[maybe_unused]] std::size_t bytes) {
#ifdef __GLIBC__
  // One allocation makes the heap grow by so much. It has to stay below the threshold at which the heap is trimmed.
  constexpr std::uintptr_t large = 2 << 20;
  ::mallopt(M_TOP_PAD, static_cast<int>(bytes));
  void* const first = ::malloc(large);
  ::mallopt(M_TOP_PAD, usual_growth);
  const auto from = (reinterpret_cast<std::uintptr_t>(first) + large - 1) & ~(large - 1),
             end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  if (first && from < end && end - from < 2 * bytes) in_large_pages(reinterpret_cast<std::byte*>(from), end - from);
  ::free(first);
#endif
}

}  // namespace tosaic
