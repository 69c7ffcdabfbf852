// SPDX-License-Identifier: Apache-2.0
#include "contract/errors.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tosaic::contract {
namespace {

// Cut between characters, not inside one.
template <std::size_t Size>
void put(char (&to)[Size], std::string_view from) {
  std::size_t length = std::min(from.size(), Size - 1);
  while (length < from.size() && length > 0 && (static_cast<unsigned char>(from[length]) & 0xC0) == 0x80) --length;
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

template <std::size_t Size>
void append(char (&to)[Size], std::size_t& end, std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1 - end);
  std::memcpy(to + end, text.data(), length);
  to[end += length] = 0;
}

template <std::size_t Size>
std::string text_of(const char (&from)[Size]) {
  return {from, static_cast<std::size_t>(std::find(from, from + Size, '\0') - from)};
}

}  // namespace

// Allocates nothing: it also reports that there is no memory.
int report(int status, const Diagnostic& why, tosaic_delegate_error* error) {
  if (!error || error->struct_bytes != sizeof *error) return status;
  put(error->code, why.code);
  put(error->message, why.message);
  put(error->help, why.help);
  put(error->file, why.place.file);
  error->line = static_cast<std::uint32_t>(std::clamp<std::int64_t>(why.place.line, 0, UINT32_MAX));
  std::size_t end = 0;
  error->notes[0] = 0;
  for (const std::string& note : why.notes) {
    if (end > 0) append(error->notes, end, "\n");
    append(error->notes, end, note);
  }
  return status;
}

Diagnostic diagnostic_of(int status, const tosaic_delegate_error& from) {
  Diagnostic why = error(text_of(from.code), text_of(from.message));
  why.help = text_of(from.help);
  why.place.file = text_of(from.file);
  why.place.line = from.line;
  why.internal = status == TOSAIC_DELEGATE_INTERNAL;
  const std::string notes = text_of(from.notes);
  for (std::size_t begin = 0; begin < notes.size();) {
    const std::size_t end = std::min(notes.find('\n', begin), notes.size());
    why.notes.push_back(notes.substr(begin, end - begin));
    begin = end + 1;
  }
  return why;
}

}  // namespace tosaic::contract
