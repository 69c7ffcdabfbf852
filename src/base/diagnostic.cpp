// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/printable.h"

namespace tosaic {
namespace {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "error";
}

std::string painted(std::string_view text, const char* ansi, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", ansi, text) : std::string(text);
}

// As printable, and of a word of thousands of characters (a name may have them) only the beginning and the end: the
// sentence around it is what somebody reads. What JSON says is whole.
std::string readable(std::string_view text) {
  constexpr std::size_t longest = 1024, first = 400, last = 100;
  std::string whole = printable(text), out;
  if (whole.size() <= longest) return whole;
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = std::min(whole.find(' ', begin), whole.size()), size = end - begin;
    if (size <= longest) {
      out.append(whole, begin, size);
    } else {
      // Between characters.
      const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(whole[at]) & 0xc0u) == 0x80; };
      std::size_t left = begin + first, right = end - last;
      while (inside(left)) --left;
      while (inside(right)) ++right;
      out += fmt::format("{}[{} more]{}", std::string_view(whole).substr(begin, left - begin), right - left,
                         std::string_view(whole).substr(right, end - right));
    }
    if (end < whole.size()) out += ' ';
    begin = end + 1;
  }
  return out;
}

}  // namespace

Diagnostic error(std::string code, std::string message) {
  Diagnostic d;
  d.code = std::move(code);
  d.message = std::move(message);
  return d;
}

Diagnostic internal_error(std::string message) {
  Diagnostic d = error("internal", std::move(message));
  d.internal = true;
  d.help = "this is a defect of tosaic; please report it with the model and the command";
  return d;
}

Diagnostic warning(std::string code, std::string message) {
  Diagnostic d = error(std::move(code), std::move(message));
  d.severity = Severity::warning;
  return d;
}

std::string render(const Diagnostic& d, bool colour) {
  std::string out;
  if (!d.place.file.empty()) {
    out += readable(d.place.file);
    if (d.place.line > 0) out += fmt::format(":{}", d.place.line);
    out += ": ";
  }
  const char* ansi = d.severity == Severity::error ? "1;31" : d.severity == Severity::warning ? "1;35" : "1;36";
  out += painted(fmt::format("{}[{}]", name_of(d.severity), d.code), ansi, colour);
  out += ": " + readable(d.message) + "\n";
  if (!d.place.text.empty()) out += "    " + readable(d.place.text) + "\n";
  if (!d.context.empty()) out += "  " + readable(d.context) + "\n";
  for (const auto& n : d.notes) out += "  note: " + readable(n) + "\n";
  if (!d.help.empty()) out += "  help: " + readable(d.help) + "\n";
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character c = character_at(text);
    const std::string_view itself = text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
    switch (c.number) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      default: break;
    }
    if (!c.is_utf8)  // JSON is UTF-8, names of files and weights need not be
      out += fmt::format("\\\\x{:02x}", static_cast<unsigned>(c.number));
    else if (c.is_obeyed)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.number));
    else
      out += itself;
  }
  return out + "\"";
}

std::string render_json(const Diagnostic& d) {
  std::string notes;
  for (const std::string& n : d.notes) notes += (notes.empty() ? "" : ",") + json_quote(n);
  return fmt::format(
      R"({{"severity":"{}","code":{},"message":{},"file":{},"line":{},"text":{},"context":{},"notes":[{}],"help":{}}})",
      name_of(d.severity), json_quote(d.code), json_quote(d.message), json_quote(d.place.file), d.place.line,
      json_quote(d.place.text), json_quote(d.context), notes, json_quote(d.help));
}

}  // namespace tosaic
