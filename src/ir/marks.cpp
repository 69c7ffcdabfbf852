// SPDX-License-Identifier: Apache-2.0
#include "ir/marks.h"

#include <fmt/format.h>

#include "ir/program_operators.h"

namespace tosaic {
namespace {

template <class T>
bool wrong_type(const Node& node, Mark<T> mark) {
  return node.attrs.find(mark.name) && !has_mark(node, mark);
}

}  // namespace

std::optional<std::string> marks_problem(const Node& node) {
  if (node.op == op::delegate && !has_mark(node, mark::region)) return "the call of a delegate names no region";
  const bool wrong =
      node.op.is_control_flow()
          ? wrong_type(node, mark::kept) || wrong_type(node, mark::floats) || wrong_type(node, mark::operands)
          : node.op.is_aten() && (wrong_type(node, mark::complex_results) || wrong_type(node, mark::exact) ||
                                  wrong_type(node, mark::finer) || wrong_type(node, mark::integers) ||
                                  wrong_type(node, mark::largest) || wrong_type(node, mark::distinct));
  if (wrong) return fmt::format("a mark of {} has another type (ir/marks.h)", node.op);
  return std::nullopt;
}

}  // namespace tosaic
