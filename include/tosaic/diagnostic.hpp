// SPDX-License-Identifier: Apache-2.0
// What went wrong, where, and the hint: every error, warning and note of tosaic is one of these, as data.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tosaic/export.hpp"

namespace tosaic {

enum class Severity : std::uint8_t { note, warning, error };

// A place in a file that a person can open: the user's Python source, or an artifact and an offset in it.
struct Place {
  std::string file;       // empty: no place is known
  std::int64_t line = 0;  // 1-based; 0: none
  std::string text;       // the source line itself, when known
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;     // stable and searchable: "pt2.not-a-zip", "target.unsupported"
  std::string message;  // one sentence, lower case, no full stop
  Place place;
  std::string context;             // "in module self.act (GELU)"
  std::vector<std::string> notes;  // facts: what disagrees with what
  std::string help;                // the hint
  bool internal = false;           // a defect of tosaic itself (exit code 3), not of the input

  Diagnostic&& at(Place p) && {
    place = std::move(p);
    return std::move(*this);
  }
  Diagnostic&& note(std::string n) && {
    notes.push_back(std::move(n));
    return std::move(*this);
  }
  Diagnostic&& hint(std::string h) && {
    help = std::move(h);
    return std::move(*this);
  }
};

// Who hears notes and warnings as they come up. Called from the thread that called the library.
using Messages = std::function<void(const Diagnostic&)>;

// The form of a good compiler: "model.py:6: error[target.unsupported]: ..." and the quoted line below; `colour` adds
// ANSI colours.
TOSAIC_API std::string render(const Diagnostic& diagnostic, bool colour);
// One JSON object: severity, code, message, file, line, text, context, notes, help.
TOSAIC_API std::string render_json(const Diagnostic& diagnostic);

}  // namespace tosaic
