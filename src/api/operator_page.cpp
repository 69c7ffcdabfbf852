// SPDX-License-Identifier: Apache-2.0
// docs/operators.md, computed: what each overload is, and which targets take it.
#include <fmt/format.h>

#include "api/guard.h"
#include "ops/rules/quantisation_rule.h"
#include "pipeline/support_columns.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

const char* mark(const OverloadSupport& row, std::size_t column) {
  const std::size_t taken = row.taken(column);
  return taken == row.calls ? "yes" : taken > 0 ? "part" : "no";
}

// "aten.add.Tensor" as the user finds it in an exported graph, behind its operator's sentence.
std::string row_text(const OverloadSupport& row, std::size_t columns) {
  std::string text = fmt::format("| `{}` | {} |", row.op, find_aten(Operator(row.op)).rule->name);
  for (std::size_t c = 0; c < columns; ++c) text += fmt::format(" {} |", mark(row, c));
  return text + "\n";
}

}  // namespace

static Result<std::string> made_page() {
  const auto columns = support_columns();
  TOSAIC_TRY(const auto matrix, support_matrix(columns));
  std::string out =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Printed by `tosaic ops --markdown`; `make matrix` writes it "
      "again. -->\n# Operators\n\n"
      "Every overload of PyTorch's operators that tosaic lowers, the rule by which its integers follow from its floats "
      "([numerics.md](numerics.md)), and who takes it: computed by asking each target about the calls that the "
      "operator's file names (`domain`). `part`: about some of these calls, because of their ranks, dtypes or "
      "arguments; `tosaic explain` says of a program's own calls which and why. What no delegate takes runs on the "
      "CPU.\n\n";
  out += "| overload | rule |";
  for (const SupportColumn& column : columns) out += fmt::format(" {} |", column.name);
  out += "\n|---|---|";
  for (std::size_t c = 0; c < columns.size(); ++c) out += "---|";
  out += "\n";
  for (const OverloadSupport& row : matrix) out += row_text(row, columns.size());
  std::vector<std::size_t> taken(columns.size());
  for (const OverloadSupport& row : matrix)
    for (std::size_t c = 0; c < columns.size(); ++c) taken[c] += row.taken(c) > 0;
  out += fmt::format("| {} overloads, taken at least in part | |", matrix.size());
  for (std::size_t count : taken) out += fmt::format(" {} |", count);
  return out + "\n";
}

Result<std::string> operator_page() {
  return guarded("", [] { return made_page(); });
}

}  // namespace tosaic
