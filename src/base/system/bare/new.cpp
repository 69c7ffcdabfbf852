// SPDX-License-Identifier: Apache-2.0
// operator new of a firmware, and malloc for what the C library still asks for: from the arena, or the end.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/system/bare/arena.h"
#include "base/system/bare/board.h"

namespace {

void print(const char* text) { tosaic_board_print(text, std::strlen(text)); }
void print(std::size_t number) {
  char digits[21];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = static_cast<char>('0' + number % 10);
  while (number /= 10);
  print(at);
}

void* take(std::size_t bytes, std::size_t alignment) {
  tosaic::Arena& arena = tosaic::Arena::current();
  if (void* memory = arena.take(bytes, alignment)) return memory;
  if (arena.sealed()) {
    print("error[device.sealed]: a run asks for ");
    print(bytes);
    print(" bytes of memory\n");
  } else {
    print("error[device.arena]: the ");
    print(arena.name());
    print(" has ");
    print(arena.bytes());
    print(" bytes, at least ");
    print(arena.wanted());
    print(" are needed\n");
  }
  tosaic_board_end(1);
}

constexpr std::size_t usual_alignment = 8;

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, usual_alignment); }
void* operator new[](std::size_t bytes) { return take(bytes, usual_alignment); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, usual_alignment); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { tosaic::Arena::give_back(memory); }
void operator delete[](void* memory) noexcept { tosaic::Arena::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { tosaic::Arena::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { tosaic::Arena::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { tosaic::Arena::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { tosaic::Arena::give_back(memory); }

extern "C" {

// What a heap of the C library would grow by: there is none.
void* _sbrk(int) {
  print("error[device.heap]: the C library asks for a heap\n");
  tosaic_board_end(1);
}
}
