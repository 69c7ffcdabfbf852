// SPDX-License-Identifier: Apache-2.0
// Memory comes from the arena (arena.h); there are no pages.
#include "base/system/pages.h"

#include <cstring>
#include <new>

#include "base/system/bare/arena.h"

namespace tosaic {

std::uint64_t machine_memory() { return Arena::of_program().bytes(); }
std::byte* take_pages(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}, std::nothrow));
  if (memory) std::memset(memory, 0, bytes);
  return memory;
}
void give_pages_back(std::byte* pages, std::size_t) { ::operator delete (pages, std::align_val_t{64}); }
void in_large_pages(std::byte*, std::size_t) {}
bool empty_pages(std::byte*, std::size_t) { return false; }
bool has_addresses(std::size_t bytes) { return bytes <= Arena::of_program().bytes(); }

}  // namespace tosaic
