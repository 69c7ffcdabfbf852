// SPDX-License-Identifier: Apache-2.0
// Large buffers of the tool (weights, activations) on huge pages: a compilation touches a few hundred megabytes once,
// and with 4 KiB pages a tenth of its time would go by in page faults. Here and not in the libraries, which must not
// choose the allocator of the program that they are linked into.
#include <sys/mman.h>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
constexpr std::size_t huge_page = std::size_t{2} << 20;
}

void* operator new(std::size_t size) {
  void* memory = nullptr;
  if (size < huge_page) {
    memory = std::malloc(size ? size : 1);
  } else if (size <= SIZE_MAX - huge_page) {
    memory = std::aligned_alloc(huge_page, (size + huge_page - 1) / huge_page * huge_page);
    if (memory) ::madvise(memory, size, MADV_HUGEPAGE);  // advice only: without it, all is as before
  }
  if (!memory) throw std::bad_alloc();
  return memory;
}

// Inlined next to a call of `new`, GCC would warn of a pair that does not match.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
