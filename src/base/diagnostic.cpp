// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic.h"

#include <fmt/format.h>

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
    out += d.place.file;
    if (d.place.line > 0) out += fmt::format(":{}", d.place.line);
    out += ": ";
  }
  const char* ansi = d.severity == Severity::error ? "1;31" : d.severity == Severity::warning ? "1;35" : "1;36";
  out += painted(fmt::format("{}[{}]", name_of(d.severity), d.code), ansi, colour);
  out += ": " + d.message + "\n";
  if (!d.place.text.empty()) out += "    " + d.place.text + "\n";
  if (!d.context.empty()) out += "  " + d.context + "\n";
  for (const auto& n : d.notes) out += "  note: " + n + "\n";
  if (!d.help.empty()) out += "  help: " + d.help + "\n";
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  return out + "\"";
}

std::string render_json(const Diagnostic& d) {
  std::string out = fmt::format(R"({{"severity":"{}","code":{},"message":{})", name_of(d.severity), json_quote(d.code),
                                json_quote(d.message));
  if (!d.place.file.empty())
    out += fmt::format(R"(,"file":{},"line":{},"text":{})", json_quote(d.place.file), d.place.line,
                       json_quote(d.place.text));
  if (!d.context.empty()) out += ",\"context\":" + json_quote(d.context);
  if (!d.notes.empty()) {
    out += ",\"notes\":[";
    for (std::size_t i = 0; i < d.notes.size(); ++i) out += (i ? "," : "") + json_quote(d.notes[i]);
    out += "]";
  }
  if (!d.help.empty()) out += ",\"help\":" + json_quote(d.help);
  return out + "}";
}

}  // namespace tosaic
