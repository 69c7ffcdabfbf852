// SPDX-License-Identifier: Apache-2.0
// Names come out of files that anybody may have written: what a terminal would obey, and what is no UTF-8, is shown
// instead. Said once, for all that leaves the library: terminal, C interface, log, JSON.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "tosaic/printable.hpp"

namespace tosaic {

// The character at the beginning of a text. Characters of no UTF-8 are single bytes.
struct Character {
  std::size_t bytes = 1;
  char32_t number = 0;     // of Unicode, or the byte
  bool is_utf8 = true;     // else the byte is no character
  bool is_obeyed = false;  // a control character, or one that turns the direction of what follows
};
Character character_at(std::string_view text);  // of a text that is not empty

// Takes a character off `text` and gives what printable shows for it: itself, or its escape, which lies in `escape`.
// Without memory of its own, for those who write to where there is little room.
std::string_view take_printable(std::string_view& text, char (&escape)[12]);

}  // namespace tosaic
