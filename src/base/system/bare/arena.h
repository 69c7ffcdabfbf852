// SPDX-License-Identifier: Apache-2.0
// The memory of a firmware: all that operator new gives comes from one stretch that the caller lends. Freed pieces are
// used again while a program is loaded; once the arena is sealed, who asks for more ends the firmware.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic {

class Arena {
 public:
  // Which one operator new asks. The program's, unless the NPU's stand-in is at work (base/system/stand_in.h).
  static Arena& current();
  static Arena* use(Arena* arena);  // null: the program's; gives the one before
  static Arena& of_program();
  static Arena& of_stand_in();  // the NPU's, where a simulator is that

  // Before the first piece is taken. `name` is for the message of exhaustion.
  void lend(const char* name, void* memory, std::size_t bytes);
  // Null: there is no piece of that size left, or it is sealed.
  void* take(std::size_t bytes, std::size_t alignment);
  static void give_back(void* piece);
  void seal() { sealed_ = true; }
  bool sealed() const { return sealed_; }

  const char* name() const { return name_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t used() const { return used_; }  // now
  // From the first byte to the last that was ever in use: an arena of that size would have done.
  std::size_t peak() const { return peak_; }
  // Of the request that it could not meet: an arena of that size would have.
  std::size_t wanted() const { return wanted_; }

 private:
  struct Piece;
  const char* name_ = "";
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0, peak_ = 0, wanted_ = 0;
  bool sealed_ = false;
};

}  // namespace tosaic
