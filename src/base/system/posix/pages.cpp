// SPDX-License-Identifier: Apache-2.0
#include "base/system/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace tosaic {

std::byte* take_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void give_pages_back(std::byte* pages, std::size_t bytes) { ::munmap(pages, bytes); }

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

}  // namespace tosaic
