// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

namespace tosaic {
namespace {

// C0, delete, C1; line and paragraph separators; the marks that turn the direction of what follows.
bool obeyed(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

// As C and JSON write it: \x1b, \u2028.
std::size_t write_escape(char (&to)[12], char32_t c) {
  constexpr char digits[] = "0123456789abcdef";
  std::size_t end = 0;
  to[end++] = '\\';
  if (c == '\n' || c == '\t') {
    to[end++] = c == '\n' ? 'n' : 't';
    return end;
  }
  to[end++] = c < 0x100 ? 'x' : 'u';
  int digit = c < 0x100 ? 2 : 4;
  while (digit < 8 && (c >> (4 * digit)) != 0) ++digit;
  while (digit-- > 0) to[end++] = digits[(c >> (4 * digit)) & 15u];
  return end;
}

}  // namespace

Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first, true, obeyed(first)};
  const Character none{1, first, false, false};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return none;
  char32_t number = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return none;
    number = number << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && number < 0x800) || (length == 4 && number < 0x10000);
  if (overlong || number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) return none;
  return {length, number, true, obeyed(number)};
}

std::string_view take_printable(std::string_view& text, char (&escape)[12]) {
  const Character c = character_at(text);
  const std::string_view itself = text.substr(0, c.bytes);
  text.remove_prefix(c.bytes);
  if (c.is_utf8 && !c.is_obeyed) return itself;
  return {escape, write_escape(escape, c.number)};
}

std::string printable(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  char escape[12];
  while (!text.empty()) {
    if (lines && (text[0] == '\n' || text[0] == '\t')) {
      out += text[0];
      text.remove_prefix(1);
    } else {
      out += take_printable(text, escape);
    }
  }
  return out;
}

}  // namespace tosaic
