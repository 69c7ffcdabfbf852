// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/sysctl.h>

#include "base/system/pages.h"

namespace tosaic {

std::uint64_t machine_memory() {
  std::uint64_t bytes = 0;
  std::size_t size = sizeof(bytes);
  return ::sysctlbyname("hw.memsize", &bytes, &size, nullptr, 0) == 0 ? bytes : UINT64_MAX;
}

// New ones take their place: those that madvise gives up need not read as zeros here.
bool empty_pages(std::byte* pages, std::size_t bytes) {
  return ::mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
         pages;
}

void keep_freed_memory() {}  // the heap of macOS does so by itself
void in_large_pages(std::byte*, std::size_t) {}
void heap_in_large_pages(std::size_t) {}

}  // namespace tosaic
