// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
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

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 16 << 20);
#endif
}

}  // namespace tosaic
