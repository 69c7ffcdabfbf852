// SPDX-License-Identifier: Apache-2.0
#include "contract/errors.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/printable.h"

namespace tosaic::contract {
namespace {

// Behind `end`, as people may see it: escapes and characters are whole or left out, like all that follows them.
template <std::size_t Size>
void append(char (&to)[Size], std::size_t& end, std::string_view text) {
  char escape[12];
  while (!text.empty()) {
    const std::string_view shown = take_printable(text, escape);
    if (shown.size() > Size - 1 - end) break;
    std::memcpy(to + end, shown.data(), shown.size());
    end += shown.size();
  }
  to[end] = 0;
}

template <std::size_t Size>
void put(char (&to)[Size], std::string_view from) {
  std::size_t end = 0;
  append(to, end, from);
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
  for (const std::string_view note : why.notes) {
    if (end + 2 > sizeof error->notes) break;
    if (end > 0) error->notes[end++] = '\n';
    append(error->notes, end, note);
  }
  return status;
}

Diagnostic diagnostic_of(int status, const tosaic_delegate_error& from) {
  Diagnostic why = error(text_of(from.code).c_str(), text_of(from.message));
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
