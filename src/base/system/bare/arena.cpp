// SPDX-License-Identifier: Apache-2.0
#include "base/system/bare/arena.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tosaic {
namespace {

constexpr std::size_t granule = 8;
std::size_t padded(std::size_t bytes) { return (bytes + granule - 1) / granule * granule; }

}  // namespace

// In front of every piece. Pieces lie one behind the other, from the arena's first byte to its last.
struct Arena::Piece {
  Piece(Arena* arena, std::size_t bytes, bool is_free)
      : owner(arena), size(static_cast<std::uint32_t>(bytes) | (is_free ? 1 : 0)) {}
  bool is_free() const { return size & 1; }
  std::size_t bytes() const { return size & ~std::uint32_t{1}; }  // behind this header

  Arena* owner;
  std::uint32_t size;  // the lowest bit: nobody has it
};

namespace {
Arena* chosen = nullptr;
}

Arena& Arena::of_program() {
  static Arena arena;
  return arena;
}
Arena& Arena::of_stand_in() {
  static Arena arena;
  return arena;
}
Arena& Arena::current() { return chosen ? *chosen : of_program(); }

void Arena::lend(const char* name, void* memory, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory), aligned = padded(start);
  const std::size_t lost = aligned - start;
  *this = Arena();
  name_ = name;
  bytes_ = bytes <= lost + sizeof(Piece) + granule ? 0 : (bytes - lost) / granule * granule;
  begin_ = reinterpret_cast<std::byte*>(aligned);
  if (bytes_ > 0) new (begin_) Piece(this, bytes_ - sizeof(Piece), true);
}

// The first piece that is large enough, whose front is left where the alignment asks for that: so what a program needs
// does not depend on how much there is.
void* Arena::take(std::size_t wanted, std::size_t alignment) {
  const std::size_t bytes = std::max(padded(wanted), granule);
  if (sealed_) return nullptr;
  std::byte* const end = begin_ + bytes_;
  for (std::byte* at = begin_; at < end; at += sizeof(Piece) + reinterpret_cast<Piece*>(at)->bytes()) {
    auto* piece = reinterpret_cast<Piece*>(at);
    if (!piece->is_free()) continue;
    std::size_t size = piece->bytes();  // with the free ones behind it
    while (at + sizeof(Piece) + size < end) {
      const auto* next = reinterpret_cast<const Piece*>(at + sizeof(Piece) + size);
      if (!next->is_free()) break;
      size += sizeof(Piece) + next->bytes();
    }
    piece = new (at) Piece(this, size, true);
    std::size_t front = (alignment - reinterpret_cast<std::uintptr_t>(at + sizeof(Piece)) % alignment) % alignment;
    while (front != 0 && front < sizeof(Piece) + granule) front += alignment;
    if (size < front + bytes) {
      const std::size_t missing = front + bytes - size;
      if (at + sizeof(Piece) + size == end) wanted_ = bytes_ + missing;
      continue;
    }
    if (front != 0) {
      new (at) Piece(this, front - sizeof(Piece), true);
      at += front, size -= front;
    }
    std::size_t given = size;
    if (size >= bytes + sizeof(Piece) + granule) {
      given = bytes;
      new (at + sizeof(Piece) + given) Piece(this, size - given - sizeof(Piece), true);
    }
    new (at) Piece(this, given, false);
    used_ += given + sizeof(Piece);
    peak_ = std::max(peak_, static_cast<std::size_t>(at - begin_) + sizeof(Piece) + bytes);
    return at + sizeof(Piece);
  }
  return nullptr;
}

void Arena::give_back(void* memory) {
  if (!memory) return;
  auto* piece = reinterpret_cast<Piece*>(static_cast<std::byte*>(memory) - sizeof(Piece));
  piece->owner->used_ -= piece->bytes() + sizeof(Piece);
  piece->size |= 1;
}

Arena* Arena::use(Arena* arena) { return std::exchange(chosen, arena); }

}  // namespace tosaic
