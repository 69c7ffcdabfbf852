// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic.h"

#include <fmt/format.h>

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

// Of the character that `text` begins with, which is not ASCII; 0: that is no UTF-8.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0u) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool no_character = (byte(0) == 0xed && byte(1) > 0x9f) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return overlong || no_character ? 0 : length;
}

}  // namespace

Diagnostic error(std::string code, std::string message) {
  Diagnostic d;
  d.code = std::move(code);
  d.message = std::move(message);
  return d;
}

Diagnostic warning(std::string code, std::string message) {
  Diagnostic d = error(std::move(code), std::move(message));
  d.severity = Severity::warning;
  return d;
}

Diagnostic internal_error(std::string message) {
  Diagnostic d = error("internal", std::move(message));
  d.internal = true;
  d.help = "this is a defect of tosaic; please report it with the model and the command";
  return d;
}

std::string render(const Diagnostic& d, bool colour) {
  std::string out;
  if (!d.place.file.empty()) {
    out += printable(d.place.file);
    if (d.place.line > 0) out += fmt::format(":{}", d.place.line);
    out += ": ";
  }
  const char* ansi = d.severity == Severity::error ? "1;31" : d.severity == Severity::warning ? "1;35" : "1;36";
  out += painted(fmt::format("{}[{}]", name_of(d.severity), d.code), ansi, colour);
  out += ": " + printable(d.message) + "\n";
  if (!d.place.text.empty()) out += "    " + printable(d.place.text) + "\n";
  if (!d.context.empty()) out += "  " + printable(d.context) + "\n";
  for (const auto& n : d.notes) out += "  note: " + printable(n) + "\n";
  if (!d.help.empty()) out += "  help: " + printable(d.help) + "\n";
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    switch (c) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      default: break;
    }
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (c < 0x80) {
      out += text[i];
    } else if (const std::size_t length = utf8_length(text.substr(i)); length == 0) {
      out += "\\ufffd";  // JSON is UTF-8, names of files and weights need not be
    } else {
      const auto next = static_cast<unsigned char>(text[i + 1]);
      if (c == 0xc2 && next < 0xa0)
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(next));
      else
        out += text.substr(i, length);
      i += length - 1;
    }
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
