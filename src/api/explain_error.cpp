// SPDX-License-Identifier: Apache-2.0
// What error codes mean, as text and as docs/errors.md.
#include <fmt/format.h>
#include <algorithm>

#include "api/errors/families.h"
#include "api/guard.h"
#include "base/spelling.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string full_name(const ErrorFamily& family, const ErrorCode& code) {
  return fmt::format("{}.{}", family.name, code.name);
}

std::string indented(std::string_view text) {
  std::string out = "  ";
  for (const char c : text) out += c == '\n' ? "\n  " : std::string(1, c);
  return out + "\n";
}

std::string listed_families() {
  std::string out = "The families of error codes; `tosaic explain-error NAME` explains one, or one code of it.\n\n";
  for (const ErrorFamily& family : error_families()) out += fmt::format("  {:<15} {}\n", family.name, family.meaning);
  return out;
}

std::string explained(const ErrorFamily& family, const ErrorCode& code, const std::string& name) {
  return fmt::format("{}: {}\n\nwhat to do: {}\n\nan example of the family {}:\n{}", name, code.meaning,
                     ErrorMeaning{&family, &code}.hint(), family.name, indented(family.example));
}

// A family, with those of its codes that begin with `prefix`.
std::string explained(const ErrorFamily& family, const std::string& prefix) {
  std::string out = fmt::format("{}: {}\n\nwhat to do: {}\n\nexample:\n{}", family.name, family.meaning, family.hint,
                                indented(family.example));
  if (!family.codes.empty()) out += "\ncodes:\n";
  for (const ErrorCode& code : family.codes)
    if (const std::string name = full_name(family, code); name.starts_with(prefix))
      out += fmt::format("  {:<30} {}\n", name, code.meaning);
  return out;
}

Diagnostic unknown_code(const std::string& code) {
  std::vector<std::string> known;
  for (const ErrorFamily& family : error_families()) {
    known.emplace_back(family.name);
    for (const ErrorCode& c : family.codes)
      if (c.name.find('*') == c.name.npos) known.push_back(full_name(family, c));
  }
  const auto near = nearest(code, known);
  return error("usage.value", fmt::format("there is no error code '{}'", code))
      .hint(near.empty() ? "`tosaic explain-error` lists the families of codes"
                         : fmt::format("did you mean {}?", alternatives(near)));
}

Result<std::string> text_of(const std::string& code) {
  if (code.empty()) return listed_families();
  const auto [family, row] = meaning_of(code);
  if (!family) return unknown_code(code);
  if (row) return explained(*family, *row, code);
  const bool begins = std::any_of(family->codes.begin(), family->codes.end(), [&, &of = *family](const ErrorCode& c) {
    return full_name(of, c).starts_with(code);
  });
  if (!begins && code != family->name) return unknown_code(code);
  return explained(*family, code);
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

}  // namespace

Result<std::string> explain_error(const std::string& code) {
  return guarded("", [&] { return text_of(code); });
}

std::string error_page() {
  std::string out =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Printed by `tosaic explain-error --markdown`; `make errors` "
      "writes it again. -->\n<!-- blocks run by: test/docs_site/test_error_examples.py -->\n# Error codes\n\n"
      "Every error, warning and note has a stable code, `error[pt2.foreign]`. The part before the dot is its family. "
      "Messages say what to do in their last line, `help:`; this page has it for all codes. In a shell:\n\n"
      "```sh\ntosaic explain-error pt2.foreign     # one code\ntosaic explain-error pt2             # a family\n"
      "tosaic explain-error                 # the list of families\n```\n\n"
      "`*` stands for a word: `aten.*.rank` is `aten.matmul.rank`, for instance. Where a code has nothing in the last "
      "column, do what its family says.\n";
  for (const ErrorFamily& family : error_families()) {
    out += fmt::format("\n## {}\n\n**What happened:** {}.\n\n**What to do:** {}.\n\n```console\n{}\n```\n", family.name,
                       family.meaning, family.hint, family.example);
    if (!family.codes.empty()) out += "\n| code | what happened | what to do |\n|---|---|---|\n";
    for (const ErrorCode& code : family.codes)
      out += fmt::format("| `{}` | {} | {} |\n", full_name(family, code), cell(code.meaning), cell(code.hint));
  }
  return out;
}

}  // namespace tosaic
