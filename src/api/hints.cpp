// SPDX-License-Identifier: Apache-2.0
#include "api/hints.h"

#include "api/errors/families.h"

namespace tosaic {

Diagnostic with_hint(Diagnostic why, const std::string& file) {
  // What was asked is at fault, and not what is in the file.
  const bool asked = why.code.starts_with("option.") || why.code.starts_with("memory.none");
  if (why.place.file.empty() && !why.internal && !asked) why.place.file = file;
  if (why.internal || !why.help.empty()) return why;
  const ErrorMeaning found = meaning_of(why.code);
  if (!found.family) return why;
  if (found.code && found.code->is_message) {
    why.notes.insert(why.notes.begin(), why.message);
    why.message = found.code->meaning;
  }
  why.help = found.hint();
  return why;
}

}  // namespace tosaic
